"""All scripts: the claims that each is about, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.stepper.conformance import electing, in_sync, reading, writing
from lockstep.stepper.conformance.script import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """A script and what it is for."""

    claims: tuple[int, ...]
    """Their numbers in the catalogue of claims."""
    name: str
    shows: str
    script: Script


SCRIPTS = (
    Scripted(
        claims=(34,),
        name="leader-writes",
        shows="Only the leader takes writes: others answer NOT_LEADER_OR_FOLLOWER.",
        script=writing.only_leaders_take_writes,
    ),
    Scripted(
        claims=(69,),
        name="valid-acks",
        shows="Other acks than -1, 0 and 1 are refused with INVALID_REQUIRED_ACKS.",
        script=writing.acks_are_valid_or_refused,
    ),
    Scripted(
        claims=(66,),
        name="acks-one",
        shows="acks=1 is answered when the record is in the leader's log, and nowhere else.",
        script=writing.acks_one_is_the_leaders_word,
    ),
    Scripted(
        claims=(41,),
        name="hidden-above-high-watermark",
        shows="Above the high watermark a fetch is answered with nothing, and past the log's end with an error.",
        script=reading.records_above_the_high_watermark_are_hidden,
    ),
    Scripted(
        claims=(37,),
        name="fetch-offset",
        shows="A leader knows how far a follower has come by the offset that it asks for.",
        script=reading.the_fetch_offset_tells_progress,
    ),
    Scripted(
        claims=(68,),
        name="effective-min-isr",
        shows="From 3.7 on min.insync.replicas counts for no more than there are replicas.",
        script=writing.min_isr_is_never_more_than_the_replicas,
    ),
    Scripted(
        claims=(68, 69),
        name="min-isr",
        shows="With fewer in the ISR than min.insync.replicas, acks=all is refused before anything is appended.",
        script=writing.min_isr_is_asked_for_before_the_append,
    ),
    Scripted(
        claims=(68,),
        name="new-min-isr",
        shows="min.insync.replicas can be set while brokers run, and counts from then on.",
        script=writing.min_isr_can_be_set,
    ),
    Scripted(
        claims=(67,),
        name="acks-all",
        shows="acks=all is answered when all of the ISR have the record, and who lacks it must leave the ISR first.",
        script=writing.acks_all_waits_for_the_isr,
    ),
    Scripted(
        claims=(40,),
        name="exclusive-high-watermark",
        shows="The high watermark is the offset after the last record that all of the ISR have.",
        script=reading.the_high_watermark_is_exclusive,
    ),
    Scripted(
        claims=(44,),
        name="lag",
        shows="A follower is out of sync after the lag time behind the log's end, and never where nothing is written.",
        script=in_sync.lag_is_time_behind_the_end,
    ),
    Scripted(
        claims=(45,),
        name="return-to-isr",
        shows="A follower that has caught up is in the ISR again.",
        script=in_sync.who_catches_up_returns,
    ),
    Scripted(
        claims=(12,),
        name="next-leader",
        shows="The first replica of the assignment that is alive and in sync leads next, not just the next one.",
        script=electing.first_in_sync_of_the_assignment_leads,
    ),
    Scripted(
        claims=(12, 51),
        name="epochs",
        shows="A dead leader's records that no other had are gone when it is back, cut off where its epoch ends.",
        script=electing.epochs_end_where_logs_part,
    ),
    Scripted(
        claims=(49,),
        name="two-deaths",
        shows="Of three replicas one is enough to keep what was committed, but not to commit more.",
        script=electing.one_of_three_survives,
    ),
    Scripted(
        claims=(19,),
        name="complete-leaders",
        shows="Who is not in the ISR does not lead, unless it is an eligible leader replica.",
        script=electing.only_complete_replicas_lead,
    ),
    Scripted(
        claims=(19,),
        name="last-leader",
        shows="When nobody is known to be complete, only the last leader leads again.",
        script=electing.the_last_leader_leads_again,
    ),
    Scripted(
        claims=(19,),
        name="unclean-election",
        shows="Who is not in the ISR leads when an unclean election is asked for, and records are lost.",
        script=electing.unclean_elections_are_asked_for,
    ),
)

CLAIMS = tuple(sorted({claim for one in SCRIPTS for claim in one.claims}))
