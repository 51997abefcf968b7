"""Published TLA+ specifications of Kafka's replication, written anew to validate the search and the model against.

Their state counts are in `docs/reference-model.md`; a test checks each of them.
"""
