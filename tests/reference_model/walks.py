"""Walks through the replication machine, step by step and by name."""

from __future__ import annotations

from lockstep_model.replication.state import Broker, ReplicationLayout
from lockstep_model.state_machine import Action, Machine, State

ALL_LEARN = "all learn what the controller decided"


def follow(machine: Machine, *rules: str) -> State:
    """The state after these steps, each of which must be possible."""
    state = machine.initial
    for rule in rules:
        if rule == ALL_LEARN:
            state = all_learn(machine, state)
            continue
        after = machine.apply(state, Action(rule))
        assert after is not None, f"not possible: {rule}"
        state = after
    return state


def all_learn(machine: Machine, state: State) -> State:
    for broker in range(3):
        while (after := machine.apply(state, Action(f"{broker} learns what the controller decided"))) is not None:
            state = after
    return state


def process(state: State, broker: int) -> Broker:
    part = state[ReplicationLayout(0).broker(broker)]
    assert isinstance(part, Broker)
    return part
