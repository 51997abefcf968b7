"""Groups of consumers and the offsets that they commit.

    generations, classic          the classic protocol: phases and time-outs, requests and answers
    reconciliation, consumer      the consumer protocol (KIP-848): one member's way to its target, heartbeats
    offsets                       OffsetCommit, TxnOffsetCommit, markers and OffsetFetch, in both protocols
    *_machine                     all of it with consumers and producers around it, to be explored

A group of one protocol does not turn into one of the other here, and offsets do not expire.
"""
