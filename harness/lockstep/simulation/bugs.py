"""The bugs that can be planted into a simulated history: `BUGS`, one row each.

A row has the bug's name, what is wrong in a sentence, the guarantee that it breaks, and the mutation. Most mutations
are a selection and an edit: of the sends that are selected (or of the records that a consumer was given) one is drawn
from the bug's random stream, and the edit changes it. If the slice has none, the bug is planted in a later slice.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lockstep.errors import UsageError
from lockstep.history.schema import SEQUENCE_BITS, Outcome
from lockstep.names import suggestion
from lockstep.simulation.batches import Fate, edges
from lockstep.simulation.log import NOTHING
from lockstep.simulation.planter import EVERY_VIEW, Bug, Mask, Planting, Scene, drop_rows
from lockstep.simulation.readers import Commit, Polls, View, ranks
from lockstep.simulation.skeleton import PartitionPlan, Settings, Skeleton
from lockstep.simulation.timeline import MS, Ints
from lockstep_model.guarantees import NAMED

NEVER_SENT = 1 << SEQUENCE_BITS - 1
"""Added to the sequence of a value, it makes a value that no producer sends."""
NEVER_NS = 1 << 60

Rows = dict[str, list[dict[str, Any]]]
Mutation: TypeAlias = Callable[[Planting, Scene], None]


# Sends, and the log that they were appended to


@dataclass(frozen=True, slots=True)
class _Send:
    """One send of a slice, with the offset at which its record is in the log, whatever its producer was told."""

    planting: Planting
    scene: Scene
    row: int
    offset: int

    @property
    def value(self) -> int:
        return int(self.scene.sends.value[self.row])

    def answer(self, **columns: int) -> None:
        """Change the response to the send."""
        for name, value in columns.items():
            getattr(self.scene.sends, name)[self.row] = value

    def replace(self, *views: View, **columns: int) -> None:
        """Change the record at its offset, which these views show: all of them unless told."""
        self.planting.replace(self.scene, self.offset, frozenset(views) or EVERY_VIEW, **columns)

    def place(self, text: str, offset: int | None = None) -> None:
        self.planting.place_send(self.scene, self.row, self.offset if offset is None else offset, text)


def _one_send(select: Callable[[Planting, Scene], Mask], edit: Callable[[_Send], None]) -> Mutation:
    def plant(planting: Planting, scene: Scene) -> None:
        row = planting.pick(select(planting, scene))
        if row is not None:
            edit(_Send(planting, scene, row, planting.offset_of(scene, row)))

    return plant


def _acked(planting: Planting, scene: Scene) -> Mask:
    return planting.strong(scene.sends, Fate.ACKED)


def _silent(planting: Planting, scene: Scene) -> Mask:
    return planting.strong(scene.sends, Fate.SILENT)


def _acked_before_marker(planting: Planting, scene: Scene) -> Mask:
    log = scene.filled.log
    last = max(np.flatnonzero(~log.data), default=-1) + log.base
    return _acked(planting, scene) & (scene.sends.offset < last)


def _acked_in_later_epoch(planting: Planting, scene: Scene) -> Mask:
    return _acked(planting, scene) & (scene.sends.epoch > 0)


def _acked_within_batch(planting: Planting, scene: Scene) -> Mask:
    """Sends whose batch has the next send, too."""
    good, batch = _acked(planting, scene), scene.sends.batch
    pairs = np.zeros(len(good), dtype=np.bool_)
    pairs[:-1] = good[:-1] & good[1:] & (batch[:-1] == batch[1:])
    return pairs


def _committed(planting: Planting, scene: Scene) -> Mask:
    return _of_transactions(planting, scene, committed=True)


def _aborted(planting: Planting, scene: Scene) -> Mask:
    return _of_transactions(planting, scene, committed=False)


def _of_transactions(planting: Planting, scene: Scene, *, committed: bool) -> Mask:
    fates = np.array([one.transaction.committed for one in planting.plan.parts] + [not committed])
    found: Mask = (scene.sends.part >= 0) & (scene.sends.fate == Fate.ACKED)
    found &= fates[scene.sends.part] == committed
    return found


def _committed_with_others(planting: Planting, scene: Scene) -> Mask:
    """Records of committed transactions that have several records in this slice."""
    part = scene.sends.part
    several = np.bincount(part + 1, minlength=len(planting.plan.parts) + 1)[part + 1] > 1
    return _committed(planting, scene) & several


def _lost_ack(send: _Send) -> None:
    send.planting.hide(send.offset, *EVERY_VIEW)
    send.place("it was acknowledged there and is in no log that a consumer read")


def _phantom(send: _Send) -> None:
    value, time_ns = send.value + NEVER_SENT, int(send.scene.sends.invoke_ns[send.row])
    send.replace(value=value)
    send.planting.place(offset=send.offset, value=value, time_ns=time_ns, text="this value was read and never sent")


def _foreign_bytes(send: _Send) -> None:
    time_ns = int(send.scene.sends.invoke_ns[send.row])
    send.replace(value=NOTHING)
    send.planting.place(offset=send.offset, time_ns=time_ns, text="a record was read that is none of this run's")


def _failed_write_read(send: _Send) -> None:
    send.answer(outcome=Outcome.FAIL, error=2)
    send.replace()
    send.place("it was read although its send certainly failed")


def _vanished_read(send: _Send) -> None:
    send.planting.hide(send.offset, View.COMMITTED, View.FINAL)
    send.replace()
    send.place("one reader was given it, and it is not there any more")


def _duplicate(send: _Send) -> None:
    """A transactional producer gives nothing up, so nothing excuses a second copy of what it sent."""
    planting, sends = send.planting, send.scene.sends
    row = planting.pick(_committed(planting, send.scene) & (sends.offset < send.offset))
    if row is None:
        return
    first = int(sends.offset[row])
    send.replace(value=int(sends.value[row]))
    planting.offsets[first] = EVERY_VIEW
    planting.place_send(send.scene, row, send.offset, f"it was acknowledged at offset {first} and is here too")


def _inconsistent_offset(planting: Planting, scene: Scene) -> None:
    sends = scene.sends
    gone = planting.pick((sends.fate == Fate.GONE) & np.isin(sends.process, planting.skeleton.writers[:-1]))
    if gone is None:
        return
    row = planting.pick(_acked(planting, scene) & (sends.invoke_ns > sends.invoke_ns[gone]))
    if row is None:
        return
    offset, other = int(sends.offset[row]), int(sends.value[gone])
    planting.shown.append((offset, View.UNCOMMITTED, other))
    planting.offsets[offset] = frozenset({View.UNCOMMITTED})
    planting.values.add(other)
    planting.place_send(scene, row, offset, f"one reader was given value {other} there, and the others this one")


def _wrong_offset(send: _Send) -> None:
    marker = _marker_after(send.scene, send.offset)
    if marker is not None:
        send.replace()
        send.answer(offset=marker)
        send.place(f"it was acknowledged here and is at offset {send.offset}", marker)


def _reorder(planting: Planting, scene: Scene) -> None:
    """Two records change places of which the second was sent when the first had been acknowledged."""
    candidates = _acked(planting, scene)
    planting.chance.shuffle(shuffled := np.flatnonzero(candidates).tolist())
    for first in shuffled[:5_000]:
        second = _first_after(scene, candidates, first)
        if second is not None and not _polled_between(planting, scene, first, second):
            value = int(scene.sends.value[first])
            _swap(planting, scene, first, second)
            text = f"it was sent after value {value} had been acknowledged, and comes before it"
            planting.place_send(scene, second, int(scene.sends.offset[second]), text)
            return


def _first_after(scene: Scene, candidates: Mask, first: int) -> int | None:
    """The first record in the log that was sent after this one's answer, if both clients sent nothing in between."""
    sends = scene.sends
    later = np.flatnonzero(sends.invoke_ns[first + 1 : first + 1_000] > sends.return_ns[first])
    if not len(later):
        return None
    second = first + 1 + int(later[0])
    between = sends.process[first + 1 : second]
    ends = (sends.process[first], sends.process[second])
    alone = ends[0] != ends[1] and not np.isin(between, ends).any()
    return second if alone and candidates[second] else None


def _polled_between(planting: Planting, scene: Scene, first: int, second: int) -> bool:
    """Whether a consumer may have read the first offset before the record that is moved there was sent."""
    step = int(np.searchsorted(scene.filled.steps.end, scene.sends.offset[first], side="right"))
    seen_ns, sent_ns = int(scene.filled.steps.committed_ns[step]), int(scene.sends.invoke_ns[second])
    lattice = planting.skeleton.lattice
    period_ns = lattice.step_ns * lattice.partitions
    own_ns = lattice.slot_ns(0, planting.plan.partition) + lattice.step_ns // 2
    return own_ns + -(-(seen_ns - own_ns) // period_ns) * period_ns <= sent_ns


def _send_order(send: _Send) -> None:
    """Two records of one batch change places: they were under way together, so only their writer can tell."""
    _swap(send.planting, send.scene, send.row, send.row + 1)
    text = "its writer sent it after the record that follows it"
    send.planting.place_send(send.scene, send.row + 1, send.offset, text)


def _swap(planting: Planting, scene: Scene, first: int, second: int) -> None:
    sends = scene.sends
    here, there = int(sends.offset[first]), int(sends.offset[second])
    planting.replace(scene, here, value=int(sends.value[second]))
    planting.replace(scene, there, value=int(sends.value[first]))
    sends.offset[first], sends.offset[second] = there, here
    planting.values |= {int(sends.value[first]), int(sends.value[second])}


def _stale_leader(send: _Send) -> None:
    epoch = int(send.scene.sends.epoch[send.row])
    send.answer(epoch=epoch - 1)
    send.replace(epoch=epoch - 1)
    send.place(f"it has leader epoch {epoch - 1}, and the records before it have {epoch}")


def _torn_transaction(send: _Send) -> None:
    send.planting.hide(send.offset, View.COMMITTED)
    send.place("its transaction was committed, and readers of committed records are given the rest of it only")


def _aborted_read(send: _Send) -> None:
    send.replace(View.COMMITTED, committed=True)
    send.place("its transaction was aborted, and readers of committed records are given it")


def _zombie_write(planting: Planting, scene: Scene) -> None:
    """A fenced producer's record is appended, at an offset where the log has a marker otherwise."""
    sends, steps = scene.sends, scene.filled.steps
    fenced = np.isin(sends.process, [one.process for one in planting.plan.refused])
    for row in np.flatnonzero(fenced & (sends.fate == Fate.REFUSED)).tolist():
        first = int(np.searchsorted(steps.appended_ns, sends.return_ns[row]))
        begins = int(steps.end[first - 1]) if first else scene.filled.log.base
        marker = _marker_after(scene, begins - 1)
        if marker is None:
            continue
        send = _Send(planting, scene, row, marker)
        send.replace(View.UNCOMMITTED, View.FINAL, value=send.value, data=True)
        send.answer(
            outcome=Outcome.OK,
            error=0,
            offset=marker,
            epoch=scene.filled.log.epoch[marker - scene.filled.log.base],
            return_ns=int(steps.committed_ns[int(np.searchsorted(steps.end, marker, side="right"))]) + 300_000,
        )
        send.place("its producer had been fenced, and it was acknowledged")
        return


def _stuck_lso(send: _Send) -> None:
    scene, part = send.scene, send.scene.sends.part
    first = int(np.flatnonzero(part == part[send.row])[0])
    offset = int(scene.sends.offset[first])
    scene.filled.steps.stable_ns[int(np.searchsorted(scene.filled.steps.end, offset, side="right")) :] = NEVER_NS
    scene.filler.stable_ns = NEVER_NS
    text = "the last stable offset never gets past it, though no transaction is open"
    send.planting.place_send(scene, first, offset, text)


def _marker_after(scene: Scene, offset: int) -> int | None:
    log = scene.filled.log
    markers = np.flatnonzero(~log.data) + log.base
    later = markers[markers > offset]
    return int(later[0]) if len(later) else None


# What consumers are given


def _one_record(select: Callable[[Polls], Mask], edit: Callable[[Planting, Polls, int], None]) -> Mutation:
    def plant(planting: Planting, scene: Scene) -> None:
        polls = _plain_reader(scene)
        row = planting.pick(select(polls) & (polls.invoke_ns[polls.poll] >= planting.since_ns))
        if row is not None:
            edit(planting, polls, row)

    return plant


def _plain_reader(scene: Scene) -> Polls:
    return next(one for one in scene.polls if one.view is View.UNCOMMITTED)


def _not_last(polls: Polls) -> Mask:
    """Records that another one follows in the same poll."""
    followed = np.zeros(len(polls.poll), dtype=np.bool_)
    followed[:-1] = polls.poll[1:] == polls.poll[:-1]
    return followed


def _first_of_a_poll(polls: Polls) -> Mask:
    first: Mask = polls.position == 0
    return first


def _in_the_middle(polls: Polls) -> Mask:
    return _not_last(polls) & ~_first_of_a_poll(polls)


def _right_after_the_poll_before(polls: Polls) -> Mask:
    after = np.zeros(len(polls.poll), dtype=np.bool_)
    after[1:] = polls.offset[1:] == polls.offset[:-1] + 1
    return _first_of_a_poll(polls) & _not_last(polls) & after


def _first_of_a_later_poll(polls: Polls) -> Mask:
    first = _first_of_a_poll(polls)
    first[:1] = False
    return first


def _skipped(though: str) -> Callable[[Planting, Polls, int], None]:
    def edit(planting: Planting, polls: Polls, row: int) -> None:
        planting.place_read(polls, row, f"was not given it, though {though}")
        drop_rows(polls, np.arange(len(polls.poll)) != row)

    return edit


def _backwards_internal(planting: Planting, polls: Polls, row: int) -> None:
    planting.place_read(polls, row, f"was given it after offset {int(polls.offset[row + 1])} in the same poll")
    for column in (polls.offset, polls.value, polls.epoch, polls.timestamp_ms):
        column[row], column[row + 1] = column[row + 1], column[row]


def _backwards_external(planting: Planting, polls: Polls, row: int) -> None:
    poll = int(polls.poll[row])
    text = "was given it again, after it had been given it in the poll before"
    planting.place_read(polls, row - 1, text, poll=poll)
    for name in ("offset", "value", "epoch", "timestamp_ms"):
        column: Ints = getattr(polls, name)
        setattr(polls, name, np.insert(column, row, column[row - 1]))
    polls.poll = np.insert(polls.poll, row, poll)
    polls.position = ranks(polls.poll)


def _precommitted_read(planting: Planting, scene: Scene) -> None:
    """The first record of an open transaction, to a consumer that has read everything before it."""
    polls = next(one for one in scene.polls if one.view is View.COMMITTED)
    log, steps = scene.filled.log, scene.filled.steps
    known = (polls.position == 0) & (polls.poll > 0) & (polls.offset >= log.base)
    for row in np.flatnonzero(known).tolist():
        offset, poll = int(polls.offset[row]), int(polls.poll[row])
        part = int(log.part[offset - log.base])
        before = poll - 1
        if part < 0 or not log.committed[offset - log.base] or int(polls.end[before]) != offset:
            continue
        while before > 0 and int(polls.end[before - 1]) == offset:
            before -= 1
        seen_ns = int(steps.committed_ns[int(np.searchsorted(steps.end, offset, side="right"))])
        asked_ns = planting.plan.parts[part].transaction.end_ns
        early = (polls.invoke_ns[before:poll] > seen_ns) & (polls.return_ns[before:poll] < asked_ns)
        if early.any():
            target = before + int(np.flatnonzero(early)[0])
            polls.poll[row] = target
            polls.position = ranks(polls.poll)
            planting.marked += [(polls, target), (polls, poll)]
            planting.values.add(int(polls.value[row]))
            text = "it was read before its transaction's commit was asked for"
            value, time_ns = int(polls.value[row]), int(polls.invoke_ns[target])
            planting.place(offset=offset, value=value, time_ns=time_ns, text=text)
            return


# What a group commits


def _one_commit(edit: Callable[[Commit | None, Commit, Commit | None], str | None]) -> Mutation:
    """The first commit that the edit changes, given the commits before and after it; it says what is wrong then."""

    def plant(planting: Planting, scene: Scene) -> None:
        commits = [None, *scene.commits, None]
        for before, commit, later in zip(commits, scene.commits, commits[2:], strict=False):
            if text := edit(before, commit, later):
                planting.commit = commit
                text = f"process {commit.process} committed it{text}"
                planting.place(offset=commit.offset, time_ns=commit.invoke_ns, text=text)
                return

    return plant


def _commit_beyond(_: Commit | None, commit: Commit, later: Commit | None) -> str | None:
    same = later is not None and later.generation == commit.generation
    if commit.outcome is not Outcome.OK or (same and later is not None and later.offset <= commit.offset):
        return None
    commit.offset += 1
    return f", and had been given records up to {commit.offset - 2} only"


def _commit_backwards(before: Commit | None, commit: Commit, _: Commit | None) -> str | None:
    if before is None or (before.process, before.generation) != (commit.process, commit.generation):
        return None
    if commit.outcome is not Outcome.OK or not 0 < before.offset < commit.offset:
        return None
    commit.offset = before.offset - 1
    return f" after {before.offset}, in the same generation"


def _zombie_commit(_before: Commit | None, commit: Commit, _later: Commit | None) -> str | None:
    if commit.outcome is not Outcome.FAIL:
        return None
    commit.outcome, commit.error = Outcome.OK, None
    return f" in generation {commit.generation}, when that was over"


# What brokers say


def _read_above_high_watermark(planting: Planting, scene: Scene) -> None:
    polls = _plain_reader(scene)
    for before, probe in zip(scene.probes, scene.probes[1:], strict=False):
        done = np.flatnonzero(polls.return_ns < probe["asked_ns"])
        position = int(polls.end[done[-1]]) if len(done) else 0
        same = before["leader_epoch"] == probe["leader_epoch"]
        if same and position > before["high_watermark"]:
            rows = np.flatnonzero(polls.offset < position)
            offset, value = int(polls.offset[rows[-1]]), int(polls.value[rows[-1]])
            if offset < before["high_watermark"]:
                continue
            probe["high_watermark"] = offset
            probe["last_stable_offset"] = min(probe["last_stable_offset"], offset)
            planting.marked.append((polls, int(polls.poll[rows[-1]])))
            text = f"process {polls.process} had been given it when the leader's high watermark was {offset}"
            planting.place(offset=offset, value=value, time_ns=probe["asked_ns"], text=text)
            return


def _epoch_backwards(planting: Planting, rows: Rows) -> None:
    mine = [row for row in rows["observations"] if row["partition"] == planting.plan.partition]
    planting.chance.shuffle(mine)
    for row in mine:
        earlier = [
            one["leader_epoch"] for one in mine if one["node"] == row["node"] and one["asked_ns"] < row["asked_ns"]
        ]
        if max(earlier, default=0) > 0:
            row["leader_epoch"] = max(earlier) - 1
            led = [one["leader"] for one in mine if one is not row and one["leader_epoch"] == row["leader_epoch"]]
            row["leader"] = led[0] if led else row["leader"]
            text = f"broker {row['node']} said leader epoch {row['leader_epoch']} after it had said {max(earlier)}"
            planting.place(time_ns=row["asked_ns"], text=text)
            return


def _two_leaders(planting: Planting, rows: Rows) -> None:
    mine = [row for row in rows["observations"] if row["partition"] == planting.plan.partition]
    row = planting.chance.choice(mine)
    leader = row["leader"]
    row["leader"] = next(broker for broker in row["isr"] if broker != leader)
    text = f"in leader epoch {row['leader_epoch']} broker {row['node']} said that {row['leader']} leads, not {leader}"
    planting.place(time_ns=row["asked_ns"], text=text)


def _double_owner(planting: Planting, rows: Rows) -> None:
    """Another member is given the partition in the same generation."""
    generation_of = {row["op"]: row["generation"] for row in rows["operations"] if row["kind"] == "assign"}
    partition = planting.plan.partition
    own = [row for row in rows["records-assigned"] if row["partition"] == partition]
    planting.chance.shuffle(own)
    for row in own:
        generation = generation_of[row["op"]]
        others = [
            one for one in rows["operations"]
            if one["kind"] == "assign" and one["generation"] == generation and one["op"] != row["op"]
        ]  # fmt: skip
        if not others:
            continue
        other = planting.chance.choice(others)
        held = [one["position"] for one in rows["records-assigned"] if one["op"] == other["op"]]
        times = {name: other[name] for name in ("op", "process", "invoke_ns", "return_ns", "outcome")}
        rows["records-assigned"].append(
            {"position": max(held, default=-1) + 1, "topic": 0, "partition": partition} | times
        )
        planting.operations |= {row["op"], other["op"]}
        text = f"processes {row['process']} and {other['process']} were both assigned it in generation {generation}"
        planting.place(time_ns=other["invoke_ns"], text=text)
        return


def _led_by_several(_: Skeleton, plan: PartitionPlan) -> bool:
    return len({reign.leader_epoch for reign in plan.timeline.reigns}) > 1


def _a_member_was_late(_: Skeleton, plan: PartitionPlan) -> bool:
    return any(one.tenure.late is not None and one.slots for one in plan.tenures)


def _has_aborted(_: Skeleton, plan: PartitionPlan) -> bool:
    return any(not part.transaction.committed for part in plan.parts)


def _zombie_before_marker(skeleton: Skeleton, plan: PartitionPlan) -> bool:
    """Whether a fenced producer sends, and a marker follows in the same slice."""
    cuts = edges(skeleton, plan)[1:-1]
    markers = np.array([part.marker_ns for part in plan.parts])
    for one in plan.refused:
        assert one.refused is not None
        ends = [cut for cut in cuts if cut > one.refused.time_ns]
        later = markers[markers > one.refused.time_ns + 10 * MS]
        if len(later) and (not ends or later.min() < ends[0]):
            return True
    return False


BUGS: dict[str, Bug] = {bug.name: bug for bug in (
    Bug("lost-ack", "An acknowledged record is in no log", "no-lost-acks", in_log=_one_send(_acked, _lost_ack)),
    Bug("phantom", "A record is read that no producer sent", "no-phantoms", in_log=_one_send(_silent, _phantom)),
    Bug("foreign-bytes", "A record is read whose bytes are not ours", "no-phantoms",
        in_log=_one_send(_silent, _foreign_bytes)),
    Bug("failed-write-read", "A record is read whose send certainly failed", "no-phantoms",
        in_log=_one_send(_silent, _failed_write_read)),
    Bug("duplicate", "A record is at two offsets", "no-duplicates", in_log=_one_send(_silent, _duplicate)),
    Bug("inconsistent-offset", "Two readers are given different values at one offset", "one-value-per-offset",
        in_log=_inconsistent_offset),
    Bug("wrong-offset", "A record is not where it was acknowledged", "one-value-per-offset",
        in_log=_one_send(_acked_before_marker, _wrong_offset)),
    Bug("reorder", "A record comes before one that had been acknowledged when it was sent", "real-time-order",
        in_log=_reorder),
    Bug("nonmonotonic-send", "Two records of one writer are in the log in the wrong order", "send-order",
        in_log=_one_send(_acked_within_batch, _send_order)),
    Bug("stale-leader-write", "A record is written with the epoch of a deposed leader", "leader-epochs-in-order",
        in_log=_one_send(_acked_in_later_epoch, _stale_leader), where=_led_by_several),
    Bug("vanished-read", "A record that was read is not there later", "committed-reads-stable",
        in_log=_one_send(_silent, _vanished_read)),
    Bug("torn-transaction", "A part of a committed transaction is not to be read", "atomic-transactions",
        in_log=_one_send(_committed_with_others, _torn_transaction)),
    Bug("aborted-read", "A record of an aborted transaction is read as committed", "no-aborted-reads",
        in_log=_one_send(_aborted, _aborted_read), where=_has_aborted),
    Bug("precommitted-read", "A record is read as committed before its commit is asked for", "no-precommitted-reads",
        in_reads=_precommitted_read),
    Bug("zombie-write", "A fenced producer's record is acknowledged", "fencing",
        in_log=_zombie_write, where=_zombie_before_marker),
    Bug("stuck-lso", "The last stable offset stays at a transaction that has ended", "last-stable-offset-advances",
        in_log=_one_send(_committed, _stuck_lso)),
    Bug("poll-skip-internal", "A reader is not given a record in the middle of a poll", "no-skips",
        in_reads=_one_record(_in_the_middle, _skipped("its poll has records before it and after it"))),
    Bug("poll-skip-external", "A reader is not given a record between two polls", "no-skips",
        in_reads=_one_record(
            _right_after_the_poll_before,
            _skipped("the poll before ended right before it, and the next began right after it"))),
    Bug("nonmonotonic-poll-internal", "A reader goes backwards within a poll", "monotonic-reads",
        in_reads=_one_record(_not_last, _backwards_internal)),
    Bug("nonmonotonic-poll-external", "A reader goes backwards from one poll to the next", "monotonic-reads",
        in_reads=_one_record(_first_of_a_later_poll, _backwards_external)),
    Bug("commit-beyond-processing", "A group commits an offset that its member has not got to",
        "commits-follow-processing", in_reads=_one_commit(_commit_beyond)),
    Bug("commit-backwards", "A group's committed offset goes backwards within a generation", "commits-in-order",
        in_reads=_one_commit(_commit_backwards)),
    Bug("zombie-commit", "A member that the group has forgotten commits an offset", "fencing",
        in_reads=_one_commit(_zombie_commit), where=_a_member_was_late),
    Bug("double-owner", "Two members own a partition in one generation", "one-owner", in_rows=_double_owner),
    Bug("read-above-high-watermark", "A record is read before it is committed", "no-reads-above-high-watermark",
        in_probes=_read_above_high_watermark),
    Bug("epoch-backwards", "A broker's view of the leader epoch goes backwards", "epochs-in-order",
        in_rows=_epoch_backwards, where=_led_by_several),
    Bug("two-leaders-in-one-epoch", "Two brokers are said to lead in one epoch", "one-leader-per-epoch",
        in_rows=_two_leaders),
)}  # fmt: skip


def require_bug(settings: Settings) -> None:
    """Only what is in the table can be planted."""
    if settings.bug is not None and settings.bug not in BUGS:
        raise UsageError(
            f"there is no bug {settings.bug!r}{suggestion(settings.bug, BUGS)}: `lockstep list bugs` shows them all"
        )


def planting_in(skeleton: Skeleton, partition: int) -> Planting | None:
    """The bug, if it is to be planted in the rows of this partition."""
    found = _chosen(skeleton)
    if found is None or found[0].in_rows is not None or found[1].partition != partition:
        return None
    return Planting.begin(found[0], skeleton, found[1])


def planting_in_rows(skeleton: Skeleton) -> Planting | None:
    """The bug, if it is to be planted in the rows that belong to no partition."""
    found = _chosen(skeleton)
    return Planting.begin(found[0], skeleton, found[1]) if found and found[0].in_rows is not None else None


def _chosen(skeleton: Skeleton) -> tuple[Bug, PartitionPlan] | None:
    """Which bug, and which partition it goes to."""
    settings = skeleton.settings
    if settings.bug is None:
        return None
    bug = BUGS[settings.bug]
    possible = [plan for plan in skeleton.partitions if bug.where(skeleton, plan)]
    if not possible:
        raise UsageError(f"there is no place for {bug.name} in this run: give another --seed, or more --ops")
    return bug, random.Random(f"{settings.seed}-{settings.bug}-where").choice(possible)  # noqa: S311


def bugs_in_words() -> list[dict[str, object]]:
    """The table for `lockstep list bugs`; `judged` says whether today's checker looks for it."""
    return [
        {"name": bug.name, "summary": bug.summary, "guarantee": bug.guarantee, "judged": bug.guarantee in NAMED}
        for bug in BUGS.values()
    ]
