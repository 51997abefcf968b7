"""Transactions: what a partition knows of them, what their coordinator decides, and both of them with their clients."""
