"""The version of Lockstep, apart from its public names so that every room may name it."""

__version__ = "0.1.0"
