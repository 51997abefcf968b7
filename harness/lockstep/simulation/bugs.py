"""Every bug that can be planted, as a table: what it is called, what it breaks, and what plants it.

Each function looks for a place in the rows of a slice and, if there is one, does exactly one thing wrong there.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from lockstep.errors import UsageError
from lockstep.history.schema import SEQUENCE_BITS, Outcome
from lockstep.names import suggestion
from lockstep.simulation.batches import Fate, edges
from lockstep.simulation.log import NOTHING
from lockstep.simulation.planter import EVERYBODY, Bug, Mask, Planting, Scene, drop_rows
from lockstep.simulation.readers import Polls, View, ranks
from lockstep.simulation.skeleton import PartitionPlan, Settings, Skeleton
from lockstep.simulation.timeline import MS, Ints
from lockstep_model.guarantees import NAMED

NEVER_SENT = 1 << SEQUENCE_BITS - 1
"""Added to the sequence of a value, it makes a value that no producer sends."""
NEVER_NS = 1 << 60

Rows = dict[str, list[dict[str, Any]]]


# In what was sent and appended


def _lost_ack(planting: Planting, scene: Scene) -> None:
    row = planting.pick(planting.strong(scene.sends, Fate.ACKED))
    if row is None:
        return
    offset = int(scene.sends.offset[row])
    planting.hide(offset, *EVERYBODY)
    _place(planting, scene, row, offset, "it was acknowledged there and is in no log that anybody read")


def _phantom(planting: Planting, scene: Scene) -> None:
    row = planting.pick(planting.strong(scene.sends, Fate.SILENT))
    if row is None:
        return
    offset, value = planting.offset_of(scene, row), int(scene.sends.value[row]) + NEVER_SENT
    planting.set_log(scene, offset, value=value)
    planting.offsets[offset] = EVERYBODY
    text = "this value was read and never sent"
    planting.place(offset=offset, value=value, time_ns=int(scene.sends.invoke_ns[row]), text=text)


def _foreign_bytes(planting: Planting, scene: Scene) -> None:
    row = planting.pick(planting.strong(scene.sends, Fate.SILENT))
    if row is None:
        return
    offset = planting.offset_of(scene, row)
    planting.set_log(scene, offset, value=NOTHING)
    planting.offsets[offset] = EVERYBODY
    text = "a record was read that is none of this run's"
    planting.place(offset=offset, time_ns=int(scene.sends.invoke_ns[row]), text=text)


def _failed_write_read(planting: Planting, scene: Scene) -> None:
    row = planting.pick(planting.strong(scene.sends, Fate.SILENT))
    if row is None:
        return
    offset = planting.offset_of(scene, row)
    scene.sends.outcome[row], scene.sends.error[row] = Outcome.FAIL, 2
    planting.offsets[offset] = EVERYBODY
    _place(planting, scene, row, offset, "it was read although its send certainly failed")


def _vanished_read(planting: Planting, scene: Scene) -> None:
    row = planting.pick(planting.strong(scene.sends, Fate.SILENT))
    if row is None:
        return
    offset = planting.offset_of(scene, row)
    planting.hide(offset, View.COMMITTED, View.FINAL)
    planting.offsets[offset] = EVERYBODY
    _place(planting, scene, row, offset, "one reader was given it, and it is not there any more")


def _duplicate(planting: Planting, scene: Scene) -> None:
    """A transactional producer gives nothing up, so nothing excuses a second copy of what it sent."""
    sends = scene.sends
    second = planting.pick(planting.strong(sends, Fate.SILENT))
    if second is None:
        return
    place = planting.offset_of(scene, second)
    row = planting.pick(_of_transactions(planting, scene, committed=True) & (sends.offset < place))
    if row is None:
        return
    planting.set_log(scene, place, value=int(sends.value[row]))
    planting.offsets |= {place: EVERYBODY, int(sends.offset[row]): EVERYBODY}
    text = f"it was acknowledged at offset {int(sends.offset[row])} and is here too"
    _place(planting, scene, row, place, text)


def _inconsistent_offset(planting: Planting, scene: Scene) -> None:
    sends = scene.sends
    gone = planting.pick((sends.fate == Fate.GONE) & np.isin(sends.process, planting.skeleton.writers[:-1]))
    if gone is None:
        return
    row = planting.pick(planting.strong(sends, Fate.ACKED) & (sends.invoke_ns > sends.invoke_ns[gone]))
    if row is None:
        return
    offset, other = int(sends.offset[row]), int(sends.value[gone])
    planting.shown.append((offset, View.UNCOMMITTED, other))
    planting.offsets[offset] = frozenset({View.UNCOMMITTED})
    planting.values.add(other)
    _place(planting, scene, row, offset, f"one reader was given value {other} there, and the others this one")


def _wrong_offset(planting: Planting, scene: Scene) -> None:
    log = scene.filled.log
    last = max(np.flatnonzero(~log.data), default=-1) + log.base
    row = planting.pick(planting.strong(scene.sends, Fate.ACKED) & (scene.sends.offset < last))
    marker = None if row is None else _marker_after(scene, int(scene.sends.offset[row]))
    if row is None or marker is None:
        return
    planting.offsets[int(scene.sends.offset[row])] = EVERYBODY
    text = f"it was acknowledged here and is at offset {int(scene.sends.offset[row])}"
    scene.sends.offset[row] = marker
    _place(planting, scene, row, marker, text)


def _reorder(planting: Planting, scene: Scene) -> None:
    """Two records change places of which the second was sent when the first had been acknowledged."""
    sends = scene.sends
    candidates = planting.strong(sends, Fate.ACKED)
    rows = np.flatnonzero(candidates)
    planting.chance.shuffle(shuffled := rows.tolist())
    for first in shuffled[:5_000]:
        second = _first_after(scene, candidates, first)
        if second is not None and not _polled_between(planting, scene, first, second):
            _swap(planting, scene, first, second)
            text = f"it was sent after value {int(sends.value[first])} had been acknowledged, and comes before it"
            _place(planting, scene, second, int(sends.offset[second]), text)
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


def _send_order(planting: Planting, scene: Scene) -> None:
    """Two records of one batch change places: they were under way together, so only their writer can tell."""
    sends = scene.sends
    good = planting.strong(sends, Fate.ACKED)
    pairs = np.zeros(len(good), dtype=np.bool_)
    pairs[:-1] = good[:-1] & good[1:] & (sends.batch[:-1] == sends.batch[1:])
    row = planting.pick(pairs)
    if row is None:
        return
    _swap(planting, scene, row, row + 1)
    _place(planting, scene, row + 1, int(sends.offset[row + 1]), "its writer sent it after the record that follows it")


def _swap(planting: Planting, scene: Scene, first: int, second: int) -> None:
    sends = scene.sends
    here, there = int(sends.offset[first]), int(sends.offset[second])
    planting.set_log(scene, here, value=int(sends.value[second]))
    planting.set_log(scene, there, value=int(sends.value[first]))
    sends.offset[first], sends.offset[second] = there, here
    planting.values |= {int(sends.value[first]), int(sends.value[second])}
    planting.offsets |= {here: EVERYBODY, there: EVERYBODY}


def _stale_leader(planting: Planting, scene: Scene) -> None:
    row = planting.pick(planting.strong(scene.sends, Fate.ACKED) & (scene.sends.epoch > 0))
    if row is None:
        return
    offset, epoch = int(scene.sends.offset[row]), int(scene.sends.epoch[row])
    scene.sends.epoch[row] = epoch - 1
    planting.set_log(scene, offset, epoch=epoch - 1)
    planting.offsets[offset] = EVERYBODY
    _place(planting, scene, row, offset, f"it has leader epoch {epoch - 1}, and the records before it have {epoch}")


# In transactions


def _of_transactions(planting: Planting, scene: Scene, *, committed: bool) -> Mask:
    fates = np.array([one.transaction.committed for one in planting.plan.parts] + [not committed])
    found: Mask = (scene.sends.part >= 0) & (scene.sends.fate == Fate.ACKED)
    found &= fates[scene.sends.part] == committed
    return found


def _torn_transaction(planting: Planting, scene: Scene) -> None:
    sends = scene.sends
    several = np.bincount(sends.part + 1, minlength=len(planting.plan.parts) + 1)[sends.part + 1] > 1
    row = planting.pick(_of_transactions(planting, scene, committed=True) & several)
    if row is None:
        return
    offset = int(sends.offset[row])
    planting.hide(offset, View.COMMITTED)
    text = "its transaction was committed, and readers of committed records are given the rest of it only"
    _place(planting, scene, row, offset, text)


def _aborted_read(planting: Planting, scene: Scene) -> None:
    row = planting.pick(_of_transactions(planting, scene, committed=False))
    if row is None:
        return
    offset = int(scene.sends.offset[row])
    planting.set_log(scene, offset, committed=True)
    planting.offsets[offset] = frozenset({View.COMMITTED})
    _place(planting, scene, row, offset, "its transaction was aborted, and readers of committed records are given it")


def _precommitted_read(planting: Planting, scene: Scene) -> None:
    """The first record of an open transaction, to a reader who has everything before it."""
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


def _zombie_write(planting: Planting, scene: Scene) -> None:
    """What a fenced producer sends is taken, and stands where the log has a marker otherwise."""
    sends, steps = scene.sends, scene.filled.steps
    fenced = np.isin(sends.process, [one.process for one in planting.plan.refused])
    for row in np.flatnonzero(fenced & (sends.fate == Fate.REFUSED)).tolist():
        first = int(np.searchsorted(steps.appended_ns, sends.return_ns[row]))
        begins = int(steps.end[first - 1]) if first else scene.filled.log.base
        marker = _marker_after(scene, begins - 1)
        if marker is None:
            continue
        step = int(np.searchsorted(steps.end, marker, side="right"))
        value = int(sends.value[row])
        planting.set_log(scene, marker, value=value, data=True)
        sends.outcome[row], sends.error[row], sends.offset[row] = Outcome.OK, 0, marker
        sends.epoch[row] = scene.filled.log.epoch[marker - scene.filled.log.base]
        sends.return_ns[row] = int(steps.committed_ns[step]) + 300_000
        planting.offsets[marker] = frozenset({View.UNCOMMITTED, View.FINAL})
        _place(planting, scene, row, marker, "its producer had been fenced, and it was acknowledged")
        return


def _stuck_lso(planting: Planting, scene: Scene) -> None:
    row = planting.pick(_of_transactions(planting, scene, committed=True))
    if row is None:
        return
    first = int(np.flatnonzero(scene.sends.part == scene.sends.part[row])[0])
    offset = int(scene.sends.offset[first])
    scene.filled.steps.stable_ns[int(np.searchsorted(scene.filled.steps.end, offset, side="right")) :] = NEVER_NS
    scene.filler.stable_ns = NEVER_NS
    text = "the last stable offset never gets past it, though no transaction is open"
    _place(planting, scene, first, offset, text)


# In what readers are given


def _plain_reader(scene: Scene) -> Polls:
    return next(one for one in scene.polls if one.view is View.UNCOMMITTED)


def _last_in_poll(polls: Polls) -> Mask:
    last = np.ones(len(polls.poll), dtype=np.bool_)
    last[:-1] = polls.poll[1:] != polls.poll[:-1]
    return last


def _in_time(planting: Planting, polls: Polls) -> Mask:
    return polls.invoke_ns[polls.poll] >= planting.since_ns


def _skip_internal(planting: Planting, scene: Scene) -> None:
    polls = _plain_reader(scene)
    _skip(planting, polls, (polls.position > 0) & ~_last_in_poll(polls), "its poll has records before it and after it")


def _skip_external(planting: Planting, scene: Scene) -> None:
    polls = _plain_reader(scene)
    after = np.zeros(len(polls.poll), dtype=np.bool_)
    after[1:] = polls.offset[1:] == polls.offset[:-1] + 1
    first = (polls.position == 0) & ~_last_in_poll(polls) & after
    _skip(planting, polls, first, "the poll before ended right before it, and the next began right after it")


def _skip(planting: Planting, polls: Polls, candidates: Mask, text: str) -> None:
    row = planting.pick(candidates & _in_time(planting, polls))
    if row is None:
        return
    offset, value, poll = int(polls.offset[row]), int(polls.value[row]), int(polls.poll[row])
    kept = np.ones(len(polls.poll), dtype=np.bool_)
    kept[row] = False
    drop_rows(polls, kept)
    planting.marked.append((polls, poll))
    text = f"process {polls.process} was not given it, though {text}"
    planting.place(offset=offset, value=value, time_ns=int(polls.invoke_ns[poll]), text=text)


def _backwards_internal(planting: Planting, scene: Scene) -> None:
    polls = _plain_reader(scene)
    row = planting.pick(~_last_in_poll(polls) & _in_time(planting, polls))
    if row is None:
        return
    for column in (polls.offset, polls.value, polls.epoch, polls.timestamp_ms):
        column[row], column[row + 1] = column[row + 1], column[row]
    poll = int(polls.poll[row])
    planting.marked.append((polls, poll))
    offset, value = int(polls.offset[row + 1]), int(polls.value[row + 1])
    text = f"process {polls.process} was given it after offset {int(polls.offset[row])} in the same poll"
    planting.place(offset=offset, value=value, time_ns=int(polls.invoke_ns[poll]), text=text)


def _backwards_external(planting: Planting, scene: Scene) -> None:
    polls = _plain_reader(scene)
    first = (polls.position == 0) & _in_time(planting, polls)
    first[:1] = False
    row = planting.pick(first)
    if row is None:
        return
    poll, before = int(polls.poll[row]), int(polls.poll[row - 1])
    for name in ("offset", "value", "epoch", "timestamp_ms"):
        column: Ints = getattr(polls, name)
        setattr(polls, name, np.insert(column, row, column[row - 1]))
    polls.poll = np.insert(polls.poll, row, poll)
    polls.position = ranks(polls.poll)
    planting.marked += [(polls, poll), (polls, before)]
    text = f"process {polls.process} was given it again, after it had been given it in the poll before"
    offset, value = int(polls.offset[row]), int(polls.value[row])
    planting.place(offset=offset, value=value, time_ns=int(polls.invoke_ns[poll]), text=text)


# In what a group commits


def _commit_beyond(planting: Planting, scene: Scene) -> None:
    for commit, later in zip(scene.commits, [*scene.commits[1:], None], strict=True):
        same = later is not None and later.generation == commit.generation
        if commit.outcome is Outcome.OK and (not same or (later is not None and later.offset > commit.offset)):
            commit.offset += 1
            planting.commit = commit
            text = f"process {commit.process} committed it, and had been given records up to {commit.offset - 2} only"
            planting.place(offset=commit.offset, time_ns=commit.invoke_ns, text=text)
            return


def _commit_backwards(planting: Planting, scene: Scene) -> None:
    for before, commit in zip(scene.commits, scene.commits[1:], strict=False):
        same = (before.process, before.generation) == (commit.process, commit.generation)
        good = commit.outcome is Outcome.OK and before.offset > 0
        if same and good and commit.offset > before.offset:
            commit.offset = before.offset - 1
            planting.commit = commit
            text = f"process {commit.process} committed it after {before.offset}, in the same generation"
            planting.place(offset=commit.offset, time_ns=commit.invoke_ns, text=text)
            return


def _zombie_commit(planting: Planting, scene: Scene) -> None:
    for commit in scene.commits:
        if commit.outcome is Outcome.FAIL:
            commit.outcome, commit.error = Outcome.OK, None
            planting.commit = commit
            text = f"process {commit.process} committed it in generation {commit.generation}, when that was over"
            planting.place(offset=commit.offset, time_ns=commit.invoke_ns, text=text)
            return


# In what brokers say


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


def _place(planting: Planting, scene: Scene, row: int, offset: int, text: str) -> None:
    value = int(scene.sends.value[row])
    planting.values.add(value)
    planting.place(offset=offset, value=value, time_ns=int(scene.sends.invoke_ns[row]), text=text)


def _marker_after(scene: Scene, offset: int) -> int | None:
    log = scene.filled.log
    markers = np.flatnonzero(~log.data) + log.base
    later = markers[markers > offset]
    return int(later[0]) if len(later) else None


def _led_by_several(_: Skeleton, plan: PartitionPlan) -> bool:
    return len({reign.leader_epoch for reign in plan.timeline.reigns}) > 1


def _somebody_was_late(_: Skeleton, plan: PartitionPlan) -> bool:
    return any(one.tenure.late is not None and one.slots for one in plan.tenures)


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


_BUGS = (
    Bug(name="lost-ack", summary="An acknowledged record is in no log", guarantee="no-lost-acks", in_log=_lost_ack),
    Bug(name="phantom", summary="A record is read that nobody sent", guarantee="no-phantoms", in_log=_phantom),
    Bug(
        name="foreign-bytes", summary="A record is read whose bytes are not ours", guarantee="no-phantoms",
        in_log=_foreign_bytes,
    ),
    Bug(
        name="failed-write-read", summary="A record is read whose send certainly failed", guarantee="no-phantoms",
        in_log=_failed_write_read,
    ),
    Bug(name="duplicate", summary="A record is at two offsets", guarantee="no-duplicates", in_log=_duplicate),
    Bug(
        name="inconsistent-offset", summary="Two readers are given different values at one offset",
        guarantee="one-value-per-offset", in_log=_inconsistent_offset,
    ),
    Bug(
        name="wrong-offset", summary="A record is not where it was acknowledged", guarantee="one-value-per-offset",
        in_log=_wrong_offset,
    ),
    Bug(
        name="reorder", summary="A record comes before one that had been acknowledged when it was sent",
        guarantee="real-time-order", in_log=_reorder,
    ),
    Bug(
        name="nonmonotonic-send", summary="Two records of one writer are in the log in the wrong order",
        guarantee="send-order", in_log=_send_order,
    ),
    Bug(
        name="stale-leader-write", summary="A record is written with the epoch of a deposed leader",
        guarantee="leader-epochs-in-order", in_log=_stale_leader, where=_led_by_several,
    ),
    Bug(
        name="vanished-read", summary="A record that was read is not there later",
        guarantee="committed-reads-stable", in_log=_vanished_read,
    ),
    Bug(
        name="torn-transaction", summary="A part of a committed transaction is not to be read",
        guarantee="atomic-transactions", in_log=_torn_transaction,
    ),
    Bug(
        name="aborted-read", summary="A record of an aborted transaction is read as committed",
        guarantee="no-aborted-reads", in_log=_aborted_read,
        where=lambda _, plan: any(not part.transaction.committed for part in plan.parts),
    ),
    Bug(
        name="precommitted-read", summary="A record is read as committed before its commit is asked for",
        guarantee="no-precommitted-reads", in_reads=_precommitted_read,
    ),
    Bug(
        name="zombie-write", summary="A fenced producer's record is acknowledged", guarantee="fencing",
        in_log=_zombie_write, where=_zombie_before_marker,
    ),
    Bug(
        name="stuck-lso", summary="The last stable offset stays at a transaction that has ended",
        guarantee="last-stable-offset-advances", in_log=_stuck_lso,
    ),
    Bug(
        name="poll-skip-internal", summary="A reader is not given a record in the middle of a poll",
        guarantee="no-skips", in_reads=_skip_internal,
    ),
    Bug(
        name="poll-skip-external", summary="A reader is not given a record between two polls", guarantee="no-skips",
        in_reads=_skip_external,
    ),
    Bug(
        name="nonmonotonic-poll-internal", summary="A reader goes backwards within a poll",
        guarantee="monotonic-reads", in_reads=_backwards_internal,
    ),
    Bug(
        name="nonmonotonic-poll-external", summary="A reader goes backwards from one poll to the next",
        guarantee="monotonic-reads", in_reads=_backwards_external,
    ),
    Bug(
        name="commit-beyond-processing", summary="A group commits an offset that its member has not got to",
        guarantee="commits-follow-processing", in_reads=_commit_beyond,
    ),
    Bug(
        name="commit-backwards", summary="A group's committed offset goes backwards within a generation",
        guarantee="commits-in-order", in_reads=_commit_backwards,
    ),
    Bug(
        name="zombie-commit", summary="A member that the group has forgotten commits an offset", guarantee="fencing",
        in_reads=_zombie_commit, where=_somebody_was_late,
    ),
    Bug(
        name="double-owner", summary="Two members own a partition in one generation", guarantee="one-owner",
        in_rows=_double_owner,
    ),
    Bug(
        name="read-above-high-watermark", summary="A record is read before it is committed",
        guarantee="no-reads-above-high-watermark", in_probes=_read_above_high_watermark,
    ),
    Bug(
        name="epoch-backwards", summary="A broker's view of the leader epoch goes backwards",
        guarantee="epochs-in-order", in_rows=_epoch_backwards, where=_led_by_several,
    ),
    Bug(
        name="two-leaders-in-one-epoch", summary="Two brokers are said to lead in one epoch",
        guarantee="one-leader-per-epoch", in_rows=_two_leaders,
    ),
)  # fmt: skip

BUGS: dict[str, Bug] = {bug.name: bug for bug in _BUGS}


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
    """For people and programs who want to choose one; `judged` says whether today's checker looks for it."""
    return [
        {"name": bug.name, "summary": bug.summary, "guarantee": bug.guarantee, "judged": bug.guarantee in NAMED}
        for bug in BUGS.values()
    ]
