"""What a run made and broke, on record before it happens, so that it can be removed after any crash."""
