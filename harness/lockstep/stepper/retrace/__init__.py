"""Counterexamples of broken variants and of mutants, replayed against real brokers."""
