"""A cluster that somebody else runs: found by its bootstrap servers, asked as any client may, never started or stopped.

Its nodes are not watched: a crash there is seen only by what it does to leaders and ISRs. Topics are the one thing that
a run makes on it; they are in the ledger, and are deleted unless they are evidence.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from harness.clients.access import Access
from harness.clients.wire.features import ask_features
from harness.clients.wire.metadata import ClusterView, ask_metadata
from harness.clients.wire.topics import create_topic, delete_topic
from harness.closeable import Closeable
from harness.cluster.brokers import Brokers
from harness.cluster.external_spec import External, ExternalSpec
from harness.cluster.spec import Listener
from harness.errors import ClusterError, EnvironmentError_, UsageError
from harness.ledger import Entry, Ledger
from harness.network.topology import Address
from harness.plan import Heal, Hold, Plan, TopicPlan
from harness.wait import wait_until

KIND = "topic"
PREFIX = "lockstep-"
"""Of every topic that a run makes: whoever lets us in by ACLs can name it there."""

ASK_S = 10.0
CONTROLLER_S = 30.0

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


def own_topic(run: str, topic: str) -> str:
    """What a planned topic is called on a cluster that has other topics: by it one finds the run that made it."""
    return f"{PREFIX}{run}-{topic}"


def planned_topic(run: str, own: str) -> str:
    """The other way round."""
    return own.removeprefix(own_topic(run, ""))


def reach(spec: ExternalSpec) -> External:
    """Ask the first bootstrap server that answers who is there; an `EnvironmentError_` when none does."""
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
            f"{PREFIX}{uuid.uuid4().hex}-{topic.name}",
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
        self._topics: list[Entry] = []
        self._addresses = {id_: Access(bootstrap=where).addresses[0] for id_, where in found.brokers.items()}

    def start(self) -> None:
        """Nothing of it is ours to start; but every broker must be where it says that clients find it."""
        for id_, address in self._addresses.items():
            try:
                ask_metadata(address, access=self._access, timeout_s=ASK_S)
            except OSError as error:
                raise ClusterError(
                    f"broker {id_} says that clients find it at {address}, where nobody answers ({error}): "
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
        self._topics.append(entry)
        super().create_topic(name, partitions=partitions, replication=replication, config=config)
        entry.effect()

    def keep_topics(self) -> None:
        """Leave this run's topics where they are, as evidence; from now on they are the user's."""
        for entry in self._topics:
            entry.healed(kept=True)


def heal_topic(entry: Entry) -> list[str]:
    """Delete a topic that a run made and no longer needs, with the credentials of the user's own file."""
    name, servers, config = (entry.fields[field] for field in ("name", "bootstrap_servers", "client_config"))
    access = ExternalSpec(bootstrap_servers=servers, client_config=config).access()
    found = delete_topic(_controller(access), name, access=access)
    entry.healed(found=found)
    return [f"topic {name} at {servers}"] if found else []


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
