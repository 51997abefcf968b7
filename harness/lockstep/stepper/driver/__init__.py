"""The cluster's side of lockstep: takes each step on a live cluster, and tells the model's side what was observed.

driver                takes a step by the part whose kind it is, and gives the situation in which the next is drawn
requests              Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and Metadata requests
transaction_requests  InitProducerId, AddPartitionsToTxn and EndTxn, to the coordinator that `coordinator_monitor` finds
faults                ends, pauses and starts brokers, cuts links, holds back control-plane messages
administration        elections, reassignments, min.insync.replicas
observation           controller decisions, and responses to `open_requests`
waits                 waits until a condition is observed
situation             what the next action is drawn from
groups                consumers and their group requests
context               what these parts share: cluster, topic, broker numbers, timers, and the `event_feed`
"""
