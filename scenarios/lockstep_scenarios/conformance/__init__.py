"""Claims about Kafka, one module per family, each with the scripts that show its claims on a live cluster.

A module declares its claims as data, and registers its scripts with `claim_script`. It imports from `lockstep.claims`
only. `lockstep conform` runs the scripts.
"""

RUNNING_ORDER = (
    "leader-writes",
    "valid-acks",
    "acks-one",
    "hidden-above-high-watermark",
    "fetch-offset",
    "effective-min-isr",
    "min-isr",
    "new-min-isr",
    "acks-all",
    "exclusive-high-watermark",
    "lag",
    "return-to-isr",
    "next-leader",
    "epochs",
    "two-deaths",
    "complete-leaders",
    "last-leader",
    "unclean-election",
)
"""Scripts that need no shrunk ISR come first, then those that wait for replica.lag.time.max.ms, last those that kill
brokers. A script that is not listed runs after these."""
