"""Wrong models: controls that a walk must tell from the right one."""
