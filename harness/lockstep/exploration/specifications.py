"""All specifications that can be searched, by name."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.errors import UsageError
from lockstep.exploration.ours import CONTROLLER, GROUPS, REPLICATION, TRANSACTIONS
from lockstep.exploration.published import PUBLISHED
from lockstep.exploration.specification import Specification
from lockstep.names import suggestion
from lockstep_model.state_machine import Machine

SPECIFICATIONS: dict[str, Specification] = {
    one.name: one for one in (*PUBLISHED, *REPLICATION, *CONTROLLER, *TRANSACTIONS, *GROUPS)
}


def get_specification(name: str, mutant: str | None = None) -> Specification:
    """The one of this name, which has this mutant."""
    if name not in SPECIFICATIONS:
        raise UsageError(f"there is no specification {name!r}{suggestion(name, SPECIFICATIONS)}")
    specification = SPECIFICATIONS[name]
    if mutant is not None and mutant not in specification.mutants:
        raise UsageError(f"{name} has no mutant {mutant!r}{suggestion(mutant, specification.mutants)}")
    return specification


def chosen(name: str, mutant: str | None, given: Mapping[str, int]) -> Machine:
    """The machine that was asked for."""
    specification = get_specification(name, mutant)
    return specification.make(specification.within(mutant, given), mutant)
