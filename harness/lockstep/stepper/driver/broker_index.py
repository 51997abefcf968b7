"""Broker index: translates the cluster's broker ids into the model's numbers, which count from 0."""

from __future__ import annotations

from lockstep.stepper.model.controller_inference import renumbered
from lockstep_model.controller import Controller
from lockstep_model.registration import BrokerId


class BrokerIndex:
    """The broker ids in ascending order; a broker's number is its position among them."""

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = tuple(sorted(ids))
        self._numbers = {id_: number for number, id_ in enumerate(self.ids)}

    def __call__(self, id_: int) -> BrokerId:
        return self._numbers[id_]

    def controller(self, seen: Controller) -> Controller:
        return renumbered(seen, self._numbers)
