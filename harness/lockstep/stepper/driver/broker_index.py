"""The model numbers brokers from 0 on; a cluster has ids."""

from __future__ import annotations

from lockstep.stepper.model.controller_inference import renumbered
from lockstep_model.controller import Controller
from lockstep_model.registration import BrokerId


class Numbering:
    """Which id has which number."""

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = tuple(sorted(ids))
        self._numbers = {id_: number for number, id_ in enumerate(self.ids)}

    def __call__(self, id_: int) -> BrokerId:
        return self._numbers[id_]

    def controller(self, seen: Controller) -> Controller:
        return renumbered(seen, self._numbers)
