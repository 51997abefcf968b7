"""Controls: models that are wrong in one Kafka rule each. A walk that has any power to detect must refute them."""
