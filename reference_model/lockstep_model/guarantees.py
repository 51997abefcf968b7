"""Kafka's guarantees that a run is judged by, and the conditions under which Kafka gives them.

Each guarantee has rows. The first row whose condition is true of the configuration and the faults says whether Kafka
gives the guarantee there, and why. kafka-semantics.md §2.3 has the conditions for safety. GUARANTEES are those that
runs are judged by today, FURTHER those of transactions and groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

ACKS_ALL = -1


class Obligation(StrEnum):
    """Whether Kafka must keep a guarantee: broken where it must hold, it is a violation, elsewhere permitted."""

    HELD = "held"
    PERMITTED = "permitted"  # to be broken
    NOT_APPLICABLE = "not-applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Settings of one producer, its topic and its readers; the defaults are Kafka's."""

    acks: int = ACKS_ALL
    idempotent: bool = True
    replication: int | None = None
    min_isr: int = 1
    unclean: bool = False
    """unclean.leader.election.enable"""
    elr: bool = False
    """Whether the cluster has eligible leader replicas (KIP-966)."""
    read_committed: bool = False
    """isolation.level of the reader"""
    resets: bool = False
    """Whether auto.offset.reset moves a consumer whose position is out of range."""
    transaction_version: int = 2
    """As producers use it: 2 only if both client and cluster support it (KIP-890)."""
    verified: bool = True
    """transaction.partition.verification.enable, on a broker that has it (KIP-890 part 1, from 3.6)."""
    assignment_epochs: bool = False
    """Whether group members may commit with earlier member epochs (KIP-1251: consumer protocol from 4.3 on)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What happened to the replicas of one partition and to a producer, as far as it was observed."""

    elections: int | None = None
    """How many times another leader may have been elected; None without observation."""
    unclean: bool = False
    """Whether an unclean election was requested (ElectLeaders, KIP-460), whatever the configuration says."""
    crashed: int = 0
    """The most brokers that at one time were down uncleanly and not back in the ISR."""
    lossy: int = 0
    """The same, of brokers that lost the end of their logs, as in a power loss; SIGKILL alone loses nothing."""
    isr_cut: bool = False
    """Whether all members of an ISR lost the end of their logs at once."""
    given_up: bool = False
    """Whether the producer gave up another record, with unknown outcome, while this one was in flight."""
    delayed: bool = False
    """Whether a request may have reached a broker after its sender gave it up: over a slow or cut link, or at a paused
    broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Whether a guarantee must hold, with the reason as half a sentence."""

    required: Obligation
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One condition of a guarantee; `because` may name fields of the configuration and the faults."""

    when: Callable[[Configuration, Faults], bool]
    required: Obligation
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """A named guarantee: broken where its condition holds it is a violation, elsewhere it is permitted."""

    name: str
    promise: str
    condition: str
    rows: tuple[Row, ...] = ()
    to_readers: bool = False
    """Whether a consumer that read a record has the same guarantee as a producer with acks=all."""

    def required(self, configuration: Configuration, faults: Faults) -> Requirement:
        """Whether Kafka must keep the guarantee with this configuration, after these faults."""
        for row in self.rows:
            if row.when(configuration, faults):
                words = {"copies": _copies(configuration.min_isr), "configuration": configuration, "faults": faults}
                return Requirement(required=row.required, reason=row.because.format(**words))
        return Requirement(required=Obligation.HELD, reason="it is always promised")


def _copies(number: int) -> str:
    return "1 copy" if number == 1 else f"{number} copies"


def _moved(faults: Faults) -> bool:
    """Whether another replica may have become leader."""
    return faults.elections is None or faults.elections > 0


def _one_of_many(configuration: Configuration) -> bool:
    """Whether acks=1 acknowledged one copy among several replicas."""
    return configuration.acks == 1 and configuration.replication != 1


COMMITTED_STAYS = (
    Row(
        when=lambda configuration, faults: faults.lossy >= configuration.min_isr,
        required=Obligation.PERMITTED,
        because="acks=all with min.insync.replicas={configuration.min_isr} promises {copies},"
        " and {faults.lossy} at once lost the end of their logs",
    ),
    Row(  # The last member of an ISR stays in it and leads again, however much of its log is gone (KIP-966).
        when=lambda configuration, faults: not configuration.elr and faults.isr_cut,
        required=Obligation.PERMITTED,
        because="all of an ISR lost the end of their logs at once, and without eligible leader replicas such a one may"
        " lead again",
    ),
    Row(
        when=lambda configuration, _: configuration.replication == 1,
        required=Obligation.HELD,
        because="the only replica kept its log",
    ),
    Row(  # An election of a replica outside the ISR cuts the others back to its log (§2.2.7).
        when=lambda _, faults: faults.unclean,
        required=Obligation.PERMITTED,
        because="a replica was elected on request that may lack acknowledged records",
    ),
    Row(
        when=lambda configuration, faults: configuration.unclean and _moved(faults),
        required=Obligation.PERMITTED,
        because="unclean.leader.election.enable lets a replica be elected that lacks acknowledged records",
    ),
    Row(  # The controller counts unclean restarts, not lost bytes, and may then elect the last known leader (§2.3).
        when=lambda configuration, faults: configuration.elr and faults.crashed >= configuration.min_isr,
        required=Obligation.PERMITTED,
        because="eligible leader replicas are safe while fewer than min.insync.replicas={configuration.min_isr}"
        " brokers are down uncleanly, and {faults.crashed} were at once",
    ),
    Row(
        when=lambda *_: True,
        required=Obligation.HELD,
        because="acks=all promises {copies}, one of which always leads",
    ),
)
"""Whether a committed record (acknowledged with acks=all, or read) keeps its offset, whatever acks its producer had."""


STAYS = (
    Row(
        when=lambda configuration, _: configuration.acks == 0,
        required=Obligation.NOT_APPLICABLE,
        because="acks=0 asks for no acknowledgement, so nothing was promised",
    ),
    Row(
        when=lambda configuration, faults: configuration.acks == 1 and faults.lossy > 0,
        required=Obligation.PERMITTED,
        because="acks=1 promises one copy, the leader's, and {faults.lossy} at once lost the end of their logs",
    ),
    Row(
        when=lambda configuration, faults: _one_of_many(configuration) and _moved(faults),
        required=Obligation.PERMITTED,
        because="acks=1 promises one copy, the leader's, which is gone when a replica without it is elected",
    ),
    Row(
        when=lambda configuration, _: _one_of_many(configuration),
        required=Obligation.HELD,
        because="acks=1 promises one copy, the leader's, and no other leader was elected",
    ),
    *COMMITTED_STAYS,
)
"""Whether an acknowledged record keeps its offset."""


def _where_it_resets(row: Row) -> Row:
    """The row for a consumer that is reset silently when its position is out of range."""
    return replace(row, when=lambda configuration, faults: configuration.resets and row.when(configuration, faults))


GUARANTEES: tuple[Guarantee, ...] = (
    Guarantee(
        name="no-lost-acks",
        promise="Every acknowledged record is in its partition when the partition is read to its end.",
        condition="The writer asked for acks=all, or a consumer had read the record, without unclean elections and with"
        " fewer than min.insync.replicas replicas cut back; or the writer asked for acks=1, and the leader stayed.",
        rows=STAYS,
    ),
    Guarantee(
        name="one-value-per-offset",
        promise="An offset holds one record, the same for all consumers, and is the one that was acknowledged there.",
        condition="Of values that were read or acknowledged, as far as no-lost-acks is promised for them.",
        rows=STAYS,
        to_readers=True,
    ),
    Guarantee(
        name="no-duplicates",
        promise="Every record is at one offset of one partition only.",
        condition="The writer was idempotent, it gave up no other record while this one was on its way, and the record"
        " stays where it was read: without unclean elections, and with few enough crashes, as for no-lost-acks.",
        rows=(
            Row(
                when=lambda configuration, _: not configuration.idempotent,
                required=Obligation.PERMITTED,
                because="only idempotent writers are promised otherwise",
            ),
            Row(  # Idempotence is per producer id and epoch (§2.5), and librdkafka takes a new epoch after a time-out.
                when=lambda _, faults: faults.given_up,
                required=Obligation.PERMITTED,
                because="a client that gives up a record takes a new producer epoch and may itself send again what is"
                " unanswered, which brokers cannot tell from new records",
            ),
            *COMMITTED_STAYS,
        ),
    ),
    Guarantee(
        name="no-phantoms",
        promise="Only what was sent, and did not certainly fail, is ever read.",
        condition="Always.",
    ),
    Guarantee(
        name="real-time-order",
        promise="A record whose send began after another's acknowledgement comes after it in the partition.",
        condition="Between records that are in the log; an acknowledged record counts where it was acknowledged.",
    ),
    Guarantee(
        name="monotonic-reads",
        promise="A reader sees the offsets of a partition strictly increase.",
        condition="Within one assignment, until it seeks; if auto.offset.reset lets it begin again where its position"
        " is gone, as long as what was read stays where it is.",
        rows=tuple(_where_it_resets(row) for row in COMMITTED_STAYS),
    ),
)

_UNTIL_VERSION_2 = Row(  # recipe 4.7, KAFKA-17754: a copy of a request is taken for one of the next transaction
    when=lambda configuration, faults: configuration.transaction_version < 2 and faults.delayed,
    required=Obligation.PERMITTED,
    because="before version 2 of transactions a request that is late can be taken for one of the next transaction",
)
_COMMITTED_ONLY = Row(
    when=lambda configuration, _: not configuration.read_committed,
    required=Obligation.NOT_APPLICABLE,
    because="with isolation.level=read_uncommitted a reader is given everything",
)

FURTHER: tuple[Guarantee, ...] = (
    Guarantee(
        name="no-aborted-reads",
        promise="A reader is given no record of a transaction that was aborted, or of one that is open.",
        condition="It reads with isolation.level=read_committed; before version 2 of transactions no request was late.",
        rows=(_COMMITTED_ONLY, _UNTIL_VERSION_2, *COMMITTED_STAYS),
    ),
    Guarantee(
        name="atomic-transactions",
        promise="Of a transaction that was committed all records can be read in the end, of any other none.",
        condition="Read with isolation.level=read_committed, when the last stable offset has passed it everywhere: the"
        " markers of its partitions are not written at once. Before version 2, no request was late.",
        rows=(_COMMITTED_ONLY, _UNTIL_VERSION_2, *COMMITTED_STAYS),
    ),
    Guarantee(
        name="last-stable-offset-advances",
        promise="Every transaction ends on every partition, at the latest when its time is up.",
        condition="Leaders have transactions verified (KIP-890), or no request was late.",
        rows=(
            Row(  # recipe 4.6: a hanging transaction
                when=lambda configuration, faults: not configuration.verified and faults.delayed,
                required=Obligation.PERMITTED,
                because="without verification a late batch opens a transaction that its coordinator knows nothing of",
            ),
            *COMMITTED_STAYS,
        ),
    ),
    Guarantee(
        name="fencing",
        promise="What a producer writes after another took its transactional id, or its time was up,"
        " is never committed; and a member that a group has put out, or replaced, commits no offset any more.",
        condition="Such a record may be acknowledged until the marker that aborts it is written.",
        rows=COMMITTED_STAYS,
    ),
    Guarantee(
        name="one-owner",
        promise="Of the members of a group's present generation no two are assigned the same partition.",
        condition="One that was put out may go on reading until it hears of it.",
    ),
    Guarantee(
        name="commits-in-order",
        promise="A member's committed offset is not overwritten by one of a member that had the partition before it.",
        condition="No member commits with an earlier epoch (KIP-1251), or no commit was late.",
        rows=(
            Row(
                when=lambda configuration, faults: configuration.assignment_epochs and faults.delayed,
                required=Obligation.PERMITTED,
                because="a member's epoch does not rise when it releases a partition, so its late commit is taken",
            ),
            *COMMITTED_STAYS,
        ),
    ),
)
"""Guarantees that no run is judged by yet; their names are those of the bugs in simulated histories."""

NAMED: dict[str, Guarantee] = {guarantee.name: guarantee for guarantee in GUARANTEES}
