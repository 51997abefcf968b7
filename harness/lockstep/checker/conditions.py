"""The conditions of a run: its topic configs, its leader elections, and the log ends that its brokers lost.

Read from the small files of the run directory; a config that is not there is unknown, and counts as Kafka's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from lockstep.checker.sources import log_of, read_small, topic_of
from lockstep.checker.timeline import Fault, read_faults
from lockstep.errors import HistoryError
from lockstep.history.lines import CRASHED, ELECTED_UNCLEANLY, LOSSY
from lockstep.history.schema import METADATA
from lockstep.history.store import SealedHistory
from lockstep.plan.plan import PLAN, Expectation, TopicPlan
from lockstep_model.guarantees import NAMED, Configuration, Faults, Guarantee, Obligation, Requirement

T = TypeVar("T")

NO_LEADER = -1

BROKERS = ("broker-", "combined-")
"""How the names of nodes begin that have partitions."""

UNCLEAN = "unclean.leader.election.enable"
ELECTING = {"zk": ("broker", "controller"), "kraft": ("controller",), "kraft-combined": ("combined",)}
"""By mode, the roles of nodes that can be the controller, which elects by its own configuration."""
ELR_FEATURE = "eligible.leader.replicas.version"
ELR_BY_DEFAULT = (4, 1)
"""The first release whose new clusters keep eligible leader replicas unless told otherwise."""


class _PlanInfo(msgspec.Struct, frozen=True, kw_only=True):
    topics: tuple[TopicPlan, ...] = ()
    expectations: tuple[Expectation, ...] = ()


class _SpecInfo(msgspec.Struct, frozen=True, kw_only=True):
    kafka: str = "0"
    mode: str = ""
    overrides: dict[str, str] = {}
    node_overrides: dict[str, dict[str, str]] = {}
    node_kafka: dict[str, str] = {}
    features: dict[str, int] = {}


class _RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    spec: _SpecInfo = _SpecInfo()
    external: _SpecInfo | None = None
    """The description of an external cluster by its own brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of one run."""

    topics: tuple[Configuration, ...]
    """By the topic's index in the history, each for a producer with Kafka's defaults."""
    elections: dict[int, int]
    """Per log, an upper bound on its leader elections; a log without metadata observations has no entry."""
    isr_cut: frozenset[int]
    """The logs with an ISR whose members all lost the ends of their logs at once."""
    unclean: frozenset[int]
    """The logs for which a fault ordered an unclean leader election."""
    crashed: int
    lossy: int
    expectations: tuple[Expectation, ...]

    def required(
        self, guarantee: Guarantee, log: int, *, acks: int, idempotent: bool, given_up: bool = False
    ) -> Requirement:
        """The requirement on this log towards a producer with these settings, or while it gave up a record."""
        configuration = replace(self.topics[topic_of(log)], acks=acks, idempotent=idempotent)
        faults = Faults(
            elections=self.elections.get(log),
            unclean=log in self.unclean,
            crashed=self.crashed,
            lossy=self.lossy,
            isr_cut=log in self.isr_cut,
            given_up=given_up,
        )
        return guarantee.required(configuration, faults)

    def stays(self, log: int, acks: int) -> bool:
        """Whether Kafka guarantees that a record of this log, acknowledged with these acks, stays at its offset."""
        return self.required(NAMED["no-lost-acks"], log, acks=acks, idempotent=True).required is Obligation.HELD


def read_conditions(r: int, run_directory: Path, history: SealedHistory) -> Conditions:
    plan = _read(run_directory / PLAN, _PlanInfo)
    info = _read(run_directory / "run.json", _RunInfo)
    spec = info.external or info.spec
    planned = {topic.name: _configuration(topic, spec) for topic in plan.topics}
    faults = read_faults(history)
    seen = list(_seen(r, history))
    return Conditions(
        topics=tuple(planned.get(topic.name, Configuration()) for topic in history.meta.topics),
        elections=_elections(seen),
        isr_cut=_isr_cut(seen, faults),
        unclean=_elected_uncleanly(r, history, faults),
        crashed=_most_at_once(faults, CRASHED),
        lossy=_most_at_once(faults, LOSSY),
        expectations=plan.expectations,
    )


def _configuration(topic: TopicPlan, spec: _SpecInfo) -> Configuration:
    unclean = _is_true(topic.config[UNCLEAN]) if UNCLEAN in topic.config else _elects_uncleanly(spec)
    min_isr = topic.config.get("min.insync.replicas", str(topic.min_isr))
    return Configuration(replication=topic.replication, min_isr=int(min_isr), unclean=unclean, elr=_keeps_elr(spec))


def _elects_uncleanly(spec: _SpecInfo) -> bool:
    """Whether any node, as the controller, would elect uncleanly where the topic config does not say."""
    electing = [
        overrides
        for node, overrides in spec.node_overrides.items()
        if node.rpartition("-")[0] in ELECTING.get(spec.mode, ())
    ]
    return any(_is_true(overrides.get(UNCLEAN, "false")) for overrides in (spec.overrides, *electing))


def _is_true(setting: str) -> bool:
    """As Kafka reads a boolean."""
    return setting.strip().lower() == "true"


def _keeps_elr(spec: _SpecInfo) -> bool:
    """New clusters keep eligible leader replicas if all nodes support them: the oldest version formats the storage."""
    if spec.mode == "zk":
        return False
    oldest = min(_release(version) for version in (spec.kafka, *spec.node_kafka.values()))
    return spec.features.get(ELR_FEATURE, int(oldest >= ELR_BY_DEFAULT)) > 0


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdigit())


class _Seen(NamedTuple):
    """One metadata observation of a log."""

    log: int
    time_ns: int
    leader_epoch: int
    leader: int
    isr: frozenset[int]


def _seen(r: int, history: SealedHistory) -> Iterator[_Seen]:
    index = {(topic.name, topic.id): number for number, topic in enumerate(history.meta.topics)}
    columns = ("answered_ns", "topic", "topic_id", "partition", "leader", "leader_epoch", "isr")
    for row in read_small(history, "observations", *columns, source=METADATA):
        topic = index.get((row["topic"], row["topic_id"] or ""))
        if topic is not None and row["partition"] is not None and row["leader_epoch"] is not None:
            leader = NO_LEADER if row["leader"] is None else row["leader"]
            yield _Seen(
                log=log_of(r, topic, row["partition"]),
                time_ns=row["answered_ns"],
                leader_epoch=row["leader_epoch"],
                leader=leader,
                isr=frozenset(row["isr"] or ()),
            )


def _elections(seen: Iterable[_Seen]) -> dict[int, int]:
    led: dict[int, set[tuple[int, int]]] = {}
    for one in seen:
        led.setdefault(one.log, set()).add((one.leader_epoch, one.leader))
    return {log: _changes_of_leader(epochs) for log, epochs in led.items()}


def _isr_cut(seen: Sequence[_Seen], faults: Sequence[Fault]) -> frozenset[int]:
    """The logs of which an ISR was seen, last before brokers lost the ends of their logs or until they were healed,
    that consisted of such brokers.
    """
    found = set()
    in_time = sorted(seen, key=lambda one: one.time_ns)
    for fault in faults:
        cut = {int(name.rpartition("-")[2]) for name in _at_once(faults, LOSSY, fault.start_ns)}
        if not cut:
            continue
        last_before: dict[int, _Seen] = {}
        for one in in_time:
            if one.time_ns < fault.start_ns:
                last_before[one.log] = one
            elif fault.overlaps(one.time_ns, one.time_ns) and one.isr and one.isr <= cut:
                found.add(one.log)
        found |= {log for log, one in last_before.items() if one.isr and one.isr <= cut}
    return frozenset(found)


def _changes_of_leader(led: set[tuple[int, int]]) -> int:
    """The most changes of leader that a log's observed (leader epoch, leader) pairs allow.

    Each leader epoch missing between observed ones counts too, as it may have had another leader. A new leader epoch
    alone is no election: the ZooKeeper-mode controller also bumps it when it takes a follower out of the ISR.
    """
    epochs = {epoch for epoch, _ in led}
    unseen = max(epochs) - min(epochs) + 1 - len(epochs)
    leaders = [leader for _, leader in sorted(led) if leader != NO_LEADER]
    return unseen + sum(before != after for before, after in pairwise(leaders))


def _elected_uncleanly(r: int, history: SealedHistory, faults: Sequence[Fault]) -> frozenset[int]:
    named = {name for fault in faults for name in _named(fault, ELECTED_UNCLEANLY)}
    return frozenset(
        log_of(r, number, int(partition))
        for topic, _, partition in (name.rpartition("-") for name in named)
        for number, known in enumerate(history.meta.topics)
        if known.name == topic
    )


def _most_at_once(faults: Sequence[Fault], key: str) -> int:
    """How many brokers had at the worst moment been through this, and were not healed: when one of them just had."""
    return max((len(_at_once(faults, key, fault.start_ns)) for fault in faults), default=0)


def _at_once(faults: Sequence[Fault], key: str, at_ns: int) -> set[str]:
    """The brokers that had been through this, and were not healed."""
    active = [fault for fault in faults if fault.overlaps(at_ns, at_ns)]
    return {node for fault in active for node in _named(fault, key) if node.startswith(BROKERS)}


def _named(fault: Fault, key: str) -> Sequence[str]:
    return fault.proof.get(key, ()) if isinstance(fault.proof, dict) else ()


def _read(path: Path, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except FileNotFoundError:
        return type_()
    except (OSError, msgspec.MsgspecError) as error:
        raise HistoryError(
            f"{path} is damaged ({error}): restore it, or remove it to judge the history alone"
        ) from error
