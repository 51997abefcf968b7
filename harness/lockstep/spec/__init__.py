"""What a cluster should be, as data."""
