"""The controller: who leads a partition, who is in sync, and what it says to brokers that want otherwise.

Each function is one event or one request: it takes the controller's knowledge and gives the next, with the answer where
somebody waits for one. Nothing here knows a clock: that a session ended is for the caller to say.
"""

from lockstep_model.controller.assignment import begin_reassignment, cancel_reassignment, create, reassign
from lockstep_model.controller.brokers import (
    ShutdownAnswer,
    begin_failover,
    begin_failure,
    begin_startup,
    fence,
    move,
    register,
    shut_down,
    unfence,
)
from lockstep_model.controller.election import (
    elect_preferred,
    elect_unclean,
    min_isr_changed,
    scan_leaderless,
    unclean_enabled,
)
from lockstep_model.controller.isr import alter_partition, begin_alter_partition
from lockstep_model.controller.state import Controller

__all__ = [
    "Controller",
    "ShutdownAnswer",
    "alter_partition",
    "begin_alter_partition",
    "begin_failover",
    "begin_failure",
    "begin_reassignment",
    "begin_startup",
    "cancel_reassignment",
    "create",
    "elect_preferred",
    "elect_unclean",
    "fence",
    "min_isr_changed",
    "move",
    "reassign",
    "register",
    "scan_leaderless",
    "shut_down",
    "unclean_enabled",
    "unfence",
]
