"""The machine that Lockstep runs on: its Java, its disks, and the user's cache."""
