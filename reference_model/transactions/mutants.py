"""The guards of idempotence and transactions that a mutant can do without, by name."""

from __future__ import annotations

SEQUENCE_CHECK = "producer-sequence-check"
DUPLICATE_WINDOW = "producer-duplicate-window"
PRODUCER_EPOCH_CHECK = "producer-epoch-check"
COORDINATOR_EPOCH_CHECK = "coordinator-epoch-check"
