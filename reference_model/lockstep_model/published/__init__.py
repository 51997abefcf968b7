"""Published specifications of Kafka's replication, written anew, to hold the search and our own model against.

Their figures are in `docs/reference-model.md`, and a test holds each of them.
"""
