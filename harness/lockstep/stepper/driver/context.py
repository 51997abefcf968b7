"""Context: what all parts of the driver share about the partition on which a walk acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockstep.cluster.cluster import Cluster
from lockstep.stepper.driver.broker_index import BrokerIndex
from lockstep.stepper.driver.event_feed import EventFeed
from lockstep.stepper.driver.timers import Timing


@dataclass(kw_only=True)
class Context:
    """The cluster and topic of a walk, Kafka's timers by the harness's clock, and the feed of events."""

    cluster: Cluster
    topic: str
    number: BrokerIndex
    """The model's numbers of the cluster's brokers."""
    timing: Timing
    feed: EventFeed
    last_response: Any = None
    """The last response that arrived during the current step, as the model represents it."""
