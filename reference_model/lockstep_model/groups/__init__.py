"""Consumer groups and their committed offsets, as the group coordinator keeps them.

    generations, classic          classic protocol: group states and timeouts, requests and responses
    reconciliation, consumer      consumer protocol (KIP-848): a member's reconciliation, ConsumerGroupHeartbeat
    offsets                       OffsetCommit, TxnOffsetCommit, transaction markers and OffsetFetch of both protocols
    *_machine                     state machines of these with consumers and producers, for the search

Conversion of a group between protocols and expiration of offsets are not modelled.
"""
