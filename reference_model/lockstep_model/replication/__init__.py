"""One partition's replication as a state machine: state, actions, invariants and mutants."""
