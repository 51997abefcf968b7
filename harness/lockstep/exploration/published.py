"""The specifications that others published."""

from __future__ import annotations

from functools import partial

from lockstep.exploration.specification import Shown, Specification
from lockstep_model.published import async_isr, replication
from lockstep_model.state_machine import Machine

_SUMMARIES = {
    "truncate-to-hw": "before 0.11: followers truncate to their own high watermark",
    "kip101": "0.11: followers truncate by the leader's epochs",
    "kip279": "2.0: followers truncate behind the last record that both have",
    "kip320-first-try": "a draft of KIP-320: epochs are compared with each fetch, and truncation waits for it",
    "kip320": "2.1: fetches, truncation and the high watermark are fenced by the leader epoch",
    "kip320-unfenced": "KIP-320 without its fence on truncation",
}


def _replication(variant: str, bounds: replication.Bounds, mutant: str | None) -> Machine:
    made = replication.VARIANTS[variant] if mutant is None else replication.MUTANTS[mutant]
    return replication.replication(made, bounds)


def _async_isr(bounds: async_isr.Bounds, mutant: str | None) -> Machine:
    return async_isr.async_isr(bounds, maximal=mutant is None)


PUBLISHED = (
    *(
        Specification(
            name=name,
            summary=summary,
            bounds=replication.Bounds(),
            make=partial(_replication, name),
            mutants={mutant: Shown(bounds=replication.Bounds()) for mutant in replication.MUTANTS if name == "kip320"},
        )
        for name, summary in _SUMMARIES.items()
    ),
    Specification(
        name="async-isr",
        summary="KIP-497: the leader counts with every ISR that the controller may have",
        bounds=async_isr.Bounds(),
        make=_async_isr,
        mutants={"maximal-isr": Shown(bounds=async_isr.Bounds())},
    ),
)
