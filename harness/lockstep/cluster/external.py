"""A cluster that Lockstep does not run: reached by its bootstrap servers as by any client, never started or stopped.

Its nodes are not watched: a crash there is seen only by what it does to leaders and ISRs. Topics are the one thing that
a run makes on it; they are in the ledger, and are deleted unless they are evidence.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from lockstep.clients.access import Access
from lockstep.clients.wire.features import ask_features
from lockstep.clients.wire.metadata import ClusterView, PartitionView, ask_metadata
from lockstep.clients.wire.topics import TopicRefused, create_topic, delete_topic
from lockstep.closeable import Closeable
from lockstep.cluster.brokers import Brokers
from lockstep.cluster.external_spec import External, ExternalSpec
from lockstep.errors import ClusterError, EnvironmentError_, UsageError
from lockstep.network.topology import Address
from lockstep.plan.plan import Heal, Hold, Plan, TopicPlan
from lockstep.recovery.ledger import Entry, Ledger
from lockstep.spec.cluster import Listener
from lockstep.wait import WaitTimeout, wait_until

KIND = "topic"
PREFIX = "lockstep-"
"""Prefix of every topic that a run creates, so that the cluster's operator can allow it by prefixed ACLs."""

ASK_S = 10.0
CONTROLLER_S = 30.0
LEADERS_S = 60.0

RECORDED = ("unclean.leader.election.enable",)
"""Defaults of the cluster's topics on which it depends what Kafka promises."""


def require_harmless(plan: Plan) -> None:
    """Clients come and go on a cluster of the user's; its nodes, links and configuration are not ours to touch."""
    instead = "give it a cluster of its own (--backend process or docker), or run another scenario, such as steady"
    touching = [str(step) for step in plan.steps if not isinstance(step, Hold | Heal)]
    if touching:
        raise UsageError(
            f"{plan.scenario} does things to nodes or links ({'; '.join(touching)}), and those of an external cluster "
            f"are not ours to touch: {instead}"
        )
    if plan.cluster:
        properties = ", ".join(f"{name}={value}" for name, value in plan.cluster.items())
        raise UsageError(
            f"{plan.scenario} needs brokers with {properties}, and those of an external cluster are not ours to "
            f"configure: {instead}"
        )


def with_own_topics(plan: Plan, run: str) -> Plan:
    """The plan with topics as they are called on a cluster that has others: by it one finds the run that made them.

    What is drawn keeps apart two runs of one name, which machines that do not know of each other may start at once.
    """
    drawn = secrets.token_hex(4)
    return plan.with_topics(lambda topic: f"{PREFIX}{run}-{drawn}-{topic}")


def with_planned_topics(plan: Plan, run: str) -> Plan:
    """The other way round."""
    own = re.compile(rf"{PREFIX}{re.escape(run)}-[0-9a-f]{{8}}-")
    return plan.with_topics(lambda topic: own.sub("", topic, count=1))


def reach(spec: ExternalSpec) -> External:
    """Ask the first bootstrap server that answers for the brokers; an `EnvironmentError_` when none does."""
    access = spec.access()
    address, view = _first_view(access)
    features = ask_features(address, access)
    return External(
        bootstrap_servers=access.bootstrap,
        client_config=spec.client_config,
        protocol=access.protocol,
        username=access.username,
        cluster_id=view.cluster_id,
        brokers={id_: str(address) for id_, address in sorted(view.addresses.items())},
        features=dict(features.finalized),
    )


def tried(spec: ExternalSpec, external: External, topics: Sequence[TopicPlan]) -> External:
    """Have the cluster say whether it would create these topics, so that what it refuses is known before it is asked.

    The result knows what their configuration would be where the plan leaves it open.
    """
    access = spec.access()
    address = _controller(access)
    overrides: dict[str, str] = {}
    for topic in topics:
        config = create_topic(
            address,
            f"{PREFIX}{secrets.token_hex(16)}-{topic.name}",
            partitions=topic.partitions,
            replication=topic.replication,
            config=topic.properties,
            access=access,
            validate_only=True,
        )
        overrides |= {name: config[name] for name in RECORDED if name in config and name not in topic.config}
    return msgspec.structs.replace(external, overrides=overrides)


class ExternalCluster(Brokers, Closeable):
    """What clients can see of it and do to it, for one run."""

    def __init__(self, spec: ExternalSpec, found: External, ledger: Ledger) -> None:
        self._found = found
        self._access = spec.access()
        self._ledger = ledger
        self._topics: dict[str, Entry] = {}
        self._addresses = {id_: Access(bootstrap=where).addresses[0] for id_, where in found.brokers.items()}

    def start(self) -> None:
        """Nothing of it is ours to start; but every broker must be where it says that clients find it."""
        for id_, address in self._addresses.items():
            try:
                ask_metadata(address, access=self._access, timeout_s=ASK_S)
            except OSError as error:
                raise ClusterError(
                    f"broker {id_} advertises {address} to clients, and no broker answers there ({error}): "
                    "its advertised.listeners must be reachable from here"
                ) from error

    def stop(self) -> None:
        """Nothing of it is ours to stop."""

    def close(self) -> None:
        """Nothing stays open between two questions."""

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(self._addresses)

    def direct(self, broker_id: int) -> Address:
        return self._addresses[broker_id]

    def access(self, listener: Listener = Listener.CLIENT) -> Access:
        if listener is not Listener.CLIENT:
            raise ClusterError(f"an external cluster has one client side, and no {listener}")
        return self._access

    def expected(self, broker_id: int) -> bool:
        return broker_id in self._addresses

    def incarnation(self, broker_id: int) -> int | None:  # noqa: ARG002
        """Clients cannot tell a broker that was restarted from one that was not."""
        return None

    def create_topic(self, name: str, *, partitions: int, replication: int, config: dict[str, str]) -> None:
        """As on any cluster, but written down first: the cluster stays, and so would the topic."""
        if any(view.partitions for view in self.ask_all((name,)).values()):
            raise ClusterError(f"there is a topic {name} already, and it is not ours")
        where = {"bootstrap_servers": self._found.bootstrap_servers, "client_config": self._found.client_config}
        entry = self._ledger.intent(KIND, name=name, **where)
        self._topics[name] = entry
        try:
            super().create_topic(name, partitions=partitions, replication=replication, config=config)
        except TopicRefused as refused:
            entry.failed(error=str(refused))  # a topic of that name, if there is one, is not ours to delete
            raise
        entry.effect()

    def wait_led(self, topic: str, partitions: int, timeout_s: float = LEADERS_S) -> set[int]:
        """Wait until every partition has a leader that answers; returns those that have one, then or in the end.

        More is not ours to wait for: a broker that is down may stay down.
        """
        led: set[int] = set()

        def all_led() -> bool:
            views = self.ask_all((topic,))
            led.clear()
            led.update(number for number, view in _newest(topic, views).items() if view.leader in views)
            return led >= set(range(partitions))

        with suppress(WaitTimeout):
            wait_until(all_led, timeout_s=timeout_s, what=f"{topic} to be led", interval_s=0.2)
        return led

    def note_not_in_sync(self, topic: str) -> list[str]:
        """What is missing of a topic, and which brokers do not answer; it is in the ledger from now on."""
        views = self.ask_all((topic,))
        missing = [f"broker {id_} does not answer" for id_ in self.broker_ids if id_ not in views]
        missing += [
            f"{topic}-{number} has {'a' if view.leader >= 0 else 'no'} leader and ISR {sorted(view.isr)} of replicas "
            f"{sorted(view.replicas)}"
            for number, view in sorted(_newest(topic, views).items())
            if not view.in_sync
        ]
        if missing:
            self._topics[topic].effect(not_in_sync=missing)
        return missing


def keep_topics(ledger: Ledger) -> list[str]:
    """Leave a run's topics where they are, as evidence; from now on they are the user's. Tells which they are."""
    topics = [entry for entry in ledger.open_entries() if entry.kind == KIND and entry.phase("effect") is not None]
    for entry in topics:
        entry.healed(kept=True)
    return [entry.fields["name"] for entry in reversed(topics)]


@contextmanager
def evidence_kept(ledger: Ledger) -> Iterator[None]:
    """When the block ends badly, the topics that it made stay: what they hold may be all that tells why."""
    try:
        yield
    except BaseException as error:
        if kept := keep_topics(ledger):
            error.add_note(f"left on the cluster as evidence: {', '.join(kept)}")
        raise


def heal_topic(entry: Entry) -> list[str]:
    """Delete a topic that a run made and no longer needs, with the credentials of the user's own file."""
    name, servers, config = (entry.fields[field] for field in ("name", "bootstrap_servers", "client_config"))
    access = ExternalSpec(bootstrap_servers=servers, client_config=config).access()
    found = delete_topic(_controller(access), name, access=access)
    entry.healed(found=found)
    return [f"topic {name} at {servers}"] if found else []


def _newest(topic: str, views: dict[int, ClusterView]) -> dict[int, PartitionView]:
    """Of each partition the view with the highest leader epoch that any broker has."""
    newest: dict[int, PartitionView] = {}
    for view in (partition for cluster in views.values() for partition in cluster.partitions):
        known = newest.get(view.partition)
        if view.topic == topic and (known is None or view.leader_epoch > known.leader_epoch):
            newest[view.partition] = view
    return newest


def _first_view(access: Access) -> tuple[Address, ClusterView]:
    failures = []
    for address in access.addresses:
        try:
            return address, ask_metadata(address, access=access, timeout_s=ASK_S)
        except OSError as error:
            failures.append(f"{address}: {error}")
    raise EnvironmentError_(
        f"no Kafka answers at {'; '.join(failures)}: check --bootstrap-servers, and if it wants TLS or SASL, "
        "give its client properties with --client-config"
    )


def _controller(access: Access) -> Address:
    """The broker to ask for changes; with KRaft any does, and forwards them."""

    def known() -> Address | None:
        _, view = _first_view(access)
        return view.addresses.get(view.controller)

    address = wait_until(known, timeout_s=CONTROLLER_S, what="the external cluster to have a controller")
    assert address is not None
    return address
