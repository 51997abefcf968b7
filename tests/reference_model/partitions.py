"""A partition of three replicas on four brokers, made and told in one line each."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from lockstep_model.controller import Controller
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import NO_LEADER, BrokerRegistration, Brokers, Registration

ZK = Parameters(mode=Mode.ZK, elr=False, epoch_bump_on_isr_shrink=True, min_isr=2)
KRAFT = Parameters(elr=False, min_isr=2)
ELR = Parameters(min_isr=2)
ALL = (ZK, KRAFT, ELR)

LEADER_EPOCH = 5
PARTITION_EPOCH = 9
NOBODY = NO_LEADER


def unclean(parameters: Parameters) -> Parameters:
    return replace(parameters, unclean=True)


def without(parameters: Parameters, guard: str) -> Parameters:
    return replace(parameters, dropped=frozenset({guard}))


def ids(digits: str) -> Brokers:
    return frozenset(int(digit) for digit in digits)


def broker_epoch(broker: int) -> int:
    return broker * 10


def controller(
    isr: str,
    leader: int,
    *,
    elr: str = "",
    last_known: str = "",
    fenced: str = "",
    leaving: str = "",
    replicas: str = "123",
    adding: str = "",
    removing: str = "",
    recovering: bool = False,
) -> Controller:
    """Brokers 1 to 4, of which some are fenced or shutting down, and the partition on some of them."""
    brokers = tuple(
        (broker, BrokerRegistration(broker_epoch(broker), broker in ids(fenced), broker in ids(leaving)))
        for broker in (1, 2, 3, 4)
    )
    partition = Registration(
        replicas=tuple(int(digit) for digit in replicas),
        isr=ids(isr),
        leader=leader,
        leader_epoch=LEADER_EPOCH,
        partition_epoch=PARTITION_EPOCH,
        elr=ids(elr),
        last_known_elr=tuple(int(digit) for digit in last_known),
        recovering=recovering,
        adding=ids(adding),
        removing=ids(removing),
    )
    return Controller(partition, brokers)


def told(after: Controller) -> str:
    """What became of the partition, and by how much its leader epoch and its partition epoch rose."""
    partition = after.partition
    parts = [f"isr {_digits(partition.isr)}", f"leader {partition.leader if partition.leader != NOBODY else '-'}"]
    parts += [f"elr {_digits(partition.elr)}"] if partition.elr else []
    parts += [f"last known {partition.last_known_elr[0]}"] if partition.last_known_elr else []
    parts += ["recovering"] if partition.recovering else []
    parts += [f"adding {_digits(partition.adding)}"] if partition.adding else []
    parts += [f"removing {_digits(partition.removing)}"] if partition.removing else []
    rises = f"+{partition.leader_epoch - LEADER_EPOCH} +{partition.partition_epoch - PARTITION_EPOCH}"
    return f"{', '.join(parts)}; {rises}"


def _digits(brokers: Brokers) -> str:
    return "".join(str(broker) for broker in sorted(brokers)) or "-"


class ExpectedPartition(NamedTuple):
    """What is told in each mode."""

    zk: str
    kraft: str
    elr: str

    def of(self, parameters: Parameters) -> str:
        return self.zk if parameters.mode is Mode.ZK else self.elr if parameters.elr else self.kraft


def everywhere(text: str) -> ExpectedPartition:
    return ExpectedPartition(text, text, text)
