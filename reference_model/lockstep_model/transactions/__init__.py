"""Transactions: the transaction coordinator, transactional appends and markers on partition leaders, and producers."""
