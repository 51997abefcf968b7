"""The model's side of consumer groups, of the classic protocol and of KIP-848.

Each group has a belief of its own, apart from that of the walk's partition: group members only read, so neither side
changes the other.

state               the state: coordinator elections, each broker's group metadata, __consumer_offsets, open requests
responses           the reference model's coordinator: the responses and the timeouts that it permits
hidden_transitions  unobserved transitions: elections heard of, group loading, request handling, timeouts
tracker             the belief of each group, and how it changes with each event
description         states and responses in words
"""
