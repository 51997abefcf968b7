"""Counterexamples replayed against real brokers: does Kafka take the turn by which a broken protocol loses data?

traces           counterexamples of published broken variants (KIP-101, KIP-279, ...) and of mutants of our model
moves            the actions of a counterexample, parsed
schedule         an order of these actions that a live cluster can take
stage            brings the cluster to the initial state, and lets it recover at the end
performer        brings about each action on the live cluster
probes           reads that show a broker's leader epoch and log
promises         invariants, checked on the events of the replay
permitted_turns  violations that Kafka is known to have, with the finding that documents each
runner, suite    one replay with its verdict; several as a run of their own
"""
