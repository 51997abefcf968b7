"""The controller: leader election, the ISR and ELR, broker registration and fencing, and reassignment of one partition.

Each function is one event or one request. It takes the controller's state and returns the next one, with the response's
error code where the request has a response. No function reads a clock: the caller says when a broker's session has
expired.
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
