"""What is seen of a live cluster: what its controller decides, and what the logs of stopped brokers hold."""
