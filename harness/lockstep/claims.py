"""The public names for modules of conformance claims (`lockstep_scenarios.conformance`); everything else may change.

A claim is a statement about Kafka, with the fact. A claim script is a generator: it yields one action at a time, is
sent the situation of the partition after it and the response to it, and says by `expect` what the claim demands there.
The partition has three replicas and min.insync.replicas=2. The reference model judges every response as well.
"""

from __future__ import annotations

from lockstep.stepper.conformance.registry import claim, claim_script
from lockstep.stepper.conformance.script import (
    Setting,
    Steps,
    all_in_sync,
    alone,
    begin,
    clients_are_sent_to,
    cut_off,
    expect,
    followers,
    high_watermark_rises,
    joined,
    led,
    log_end,
    log_ends_at,
    mended,
    read,
    reply,
    require,
    set_min_isr,
    values,
    wait,
    write,
)
from lockstep.stepper.driver.actions import (
    Ask,
    AskEpochEnd,
    Elect,
    Idle,
    Kill,
    Reach,
    Reassign,
    Start,
    Stop,
    Until,
    Wait,
    Write,
)
from lockstep.stepper.driver.situation import Situation
from lockstep_model.errors import Error
from lockstep_model.partition.offsets import EndOfEpoch, Listed
from lockstep_model.partition.produce import Produced, Unanswered
from lockstep_model.registration import NO_LEADER

__all__ = [
    # Declarations of claims and of their scripts.
    "claim",
    "claim_script",
    # What a script is given, and what it is.
    "Setting",
    "Situation",
    "Steps",
    # What a claim demands, and what a script needs before the claim says anything.
    "expect",
    "require",
    "all_in_sync",
    # Actions on the cluster.
    "Ask",
    "AskEpochEnd",
    "Elect",
    "Idle",
    "Kill",
    "Reach",
    "Reassign",
    "Start",
    "Stop",
    "Until",
    "Wait",
    "Write",
    # Sequences of actions that many scripts take.
    "alone",
    "begin",
    "clients_are_sent_to",
    "cut_off",
    "high_watermark_rises",
    "joined",
    "led",
    "log_end",
    "log_ends_at",
    "mended",
    "read",
    "set_min_isr",
    "wait",
    "write",
    # Responses of brokers, and what is read off them.
    "NO_LEADER",
    "EndOfEpoch",
    "Error",
    "Listed",
    "Produced",
    "Unanswered",
    "followers",
    "reply",
    "values",
]
