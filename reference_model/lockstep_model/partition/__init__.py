"""One partition: its log, its replicas, and what they answer to producers, consumers and followers."""
