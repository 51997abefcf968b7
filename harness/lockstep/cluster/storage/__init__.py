"""A broker's log directories and segment files, as they are on disk."""
