"""Names of the guards of idempotence and transactions that a mutant of the model can drop.

Verification with the coordinator (KIP-890 part 1) is no guard here but a parameter: `transaction_verification`.
"""

from __future__ import annotations

# Guards of the partition leader (UnifiedLog, ProducerStateManager, ProducerAppendInfo)
SEQUENCE_CHECK = "producer-sequence-check"
DUPLICATE_WINDOW = "producer-duplicate-window"
PRODUCER_EPOCH_CHECK = "producer-epoch-check"
MARKER_EPOCH_RISES = "marker-epoch-must-rise"
COORDINATOR_EPOCH_CHECK = "coordinator-epoch-check"
VERIFICATION_GUARD = "verification-guard"
OPEN_FOR_ITS_EPOCH = "transaction-open-for-its-epoch-only"
OPEN_HOLDS_LSO = "open-transaction-holds-lso"
UNREPLICATED_HOLDS_LSO = "unreplicated-transaction-holds-lso"

# Guards of the transaction coordinator (TransactionCoordinator, TransactionMetadata)
EPOCH_BUMP_ON_INIT = "epoch-bump-on-init"
EPOCH_BUMP_ON_FENCE = "epoch-bump-on-fence"
EPOCH_BUMP_ON_END = "epoch-bump-on-end"
ABORT_ON_INIT = "abort-of-the-open-transaction-on-init"
END_EPOCH_CHECK = "end-transaction-epoch-check"
END_DIRECTION_CHECK = "end-transaction-direction-check"
END_WAITS_FOR_MARKERS = "end-transaction-waits-for-markers"
END_MAY_BE_REPEATED = "end-transaction-may-be-repeated"
ADD_EPOCH_CHECK = "add-partitions-epoch-check"
ADD_WAITS_FOR_MARKERS = "add-partitions-waits-for-markers"
ADD_WAITS_BEFORE_IDENTITY = "add-partitions-waits-before-identity"
COMPLETE_WAITS_FOR_MARKERS = "completion-waits-for-markers"
