"""One partition: its log, its replicas, and their responses to Produce, Fetch, ListOffsets and OffsetForLeaderEpoch."""
