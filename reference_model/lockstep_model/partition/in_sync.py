"""A leader keeps the ISR: whom it wants to add or to remove, and what it makes of the controller's answer (KIP-497)."""

from __future__ import annotations

from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.replica import (
    UNKNOWN,
    Leadership,
    Progress,
    Replica,
    advance_high_watermark,
    caught_up,
    eligible,
)
from lockstep_model.registration import AlterPartition, BrokerId, Brokers, Registration
from lockstep_model.replication import mutants

ROLLED_BACK = frozenset({Error.INELIGIBLE_REPLICA, Error.OPERATION_NOT_ATTEMPTED})
"""The controller says that the request was not applied, and never will be."""
AWAITING_METADATA = frozenset(
    {
        Error.FENCED_LEADER_EPOCH,
        Error.INVALID_UPDATE_VERSION,
        Error.INVALID_REQUEST,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.NEW_LEADER_ELECTED,
    }
)
"""The leader is behind: the request stays pending until metadata tells what became of it. After any other error it is
sent again."""


def expand(parameters: Parameters, replica: Replica, follower: BrokerId) -> Replica:
    """A leader that was just fetched from asks for the follower in the ISR (Partition.maybeExpandIsr).

    It must have reached the high watermark, and the start of this epoch: there may be committed records between an
    inherited high watermark and that start (KAFKA-7128).
    """
    leadership = replica.leadership
    progress = leadership.of(follower) if leadership else None
    if leadership is None or progress is None or leadership.pending is not None or follower in leadership.isr:
        return replica
    if not eligible(parameters, leadership, follower):
        return replica
    if progress.end < replica.high_watermark and parameters.guards(mutants.EXPAND_REACHES_HIGH_WATERMARK):
        return replica
    if progress.end < leadership.epoch_start and parameters.guards(mutants.EXPAND_REACHES_EPOCH_START):
        return replica
    return _ask(parameters, replica, leadership, leadership.isr | {follower})


def lag_passes(replica: Replica, follower: BrokerId, *, silent: bool = True) -> Replica:
    """A follower was not caught up for replica.lag.time.max.ms; if it was silent it did not even fetch for so long.

    One that is at the leader's end counts as caught up all the same, but not for longer than nothing is appended.
    """
    leadership = replica.leadership
    progress = leadership.of(follower) if leadership else None
    if leadership is None or progress is None:
        return replica
    passed = progress._replace(recent=False)
    if silent:
        passed = passed._replace(fetched=False, leader_end=UNKNOWN)
    return replica._replace(leadership=leadership.with_progress(follower, passed))


def shrink(parameters: Parameters, replica: Replica) -> Replica:
    """A leader looks for members of the ISR that lag, and asks for it without them (Partition.maybeShrinkIsr)."""
    leadership = replica.leadership
    if leadership is None or leadership.pending is not None:
        return replica
    lagging = frozenset(
        follower
        for follower in leadership.isr - {replica.broker}
        if not caught_up(replica, leadership.of(follower) or Progress())
    )
    return _ask(parameters, replica, leadership, leadership.isr - lagging) if lagging else replica


def _ask(parameters: Parameters, replica: Replica, leadership: Leadership, isr: Brokers) -> Replica:
    """Ask for an ISR; which members' incarnations are meant, only KRaft is told (Partition.addBrokerEpochToIsr)."""
    known = {follower: progress.broker_epoch for follower, progress in leadership.followers}
    known[replica.broker] = replica.broker_epoch
    epochs = ((member, known.get(member)) for member in sorted(isr))
    asked = AlterPartition(
        broker=replica.broker,
        broker_epoch=replica.broker_epoch,
        leader_epoch=replica.leader_epoch,
        partition_epoch=replica.partition_epoch,
        isr=isr,
        epochs=tuple((member, epoch) for member, epoch in epochs if epoch is not None)
        if parameters.mode is Mode.KRAFT
        else (),
    )
    return replica._replace(leadership=leadership._replace(pending=asked))


def settle(parameters: Parameters, replica: Replica, asked: AlterPartition, answer: Registration | Error) -> Replica:
    """A leader gets the answer to what it asked for (Partition.submitAlterPartition).

    It is of no use if the leader asked for something else since. A registration of another leader epoch, or an older
    one, leaves the request pending.
    """
    leadership = replica.leadership
    if leadership is None or leadership.pending != asked:
        return replica
    if isinstance(answer, Error):
        rolled_back = leadership._replace(pending=None)
        return replica._replace(leadership=rolled_back) if answer in ROLLED_BACK else replica
    if answer.leader_epoch != replica.leader_epoch or answer.partition_epoch < replica.partition_epoch:
        return replica
    ahead = parameters.mode is Mode.KRAFT and (leadership.ahead or answer.partition_epoch > replica.partition_epoch)
    return advance_high_watermark(
        parameters,
        replica._replace(
            partition_epoch=answer.partition_epoch,
            leadership=leadership._replace(isr=answer.isr, pending=None, ahead=ahead),
        ),
    )


def sent_again(error: Error) -> bool:
    """Whether the leader asks once more after this answer."""
    return error is not Error.NONE and error not in ROLLED_BACK | AWAITING_METADATA


def asked_for(replica: Replica) -> AlterPartition | None:
    """What a leader has asked for, and waits for."""
    return replica.leadership.pending if replica.leadership is not None else None


def rolled_back(replica: Replica) -> Replica:
    """A leader that waits for nothing any more."""
    return replica._replace(leadership=replica.leadership and replica.leadership._replace(pending=None))
