"""What tests try on a secured cluster."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message, Producer

from lockstep.clients.access import Access
from lockstep.spec.cluster import Mechanism, Security

SCRAM_OVER_TLS = Security(tls=True, sasl=Mechanism.SCRAM_512, users=("alice",))
TOPIC = "ledger"


def produce(access: Access, topic: str = TOPIC, timeout_ms: int = 30_000) -> KafkaError | None:
    """What became of one record."""
    answers: list[tuple[KafkaError | None, Message]] = []
    producer = Producer({**access.librdkafka(), "message.timeout.ms": timeout_ms, "log_level": 0})
    producer.produce(topic, b"x", on_delivery=lambda error, message: answers.append((error, message)))
    assert producer.flush(60) == 0
    ((error, _),) = answers
    return error
