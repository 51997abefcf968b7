"""A cluster that is one state of the model: it does at random what may happen unseen, and answers like Kafka.

With it the belief is tested without a clock or a network, and against any model, right or wrong.
"""

from __future__ import annotations

import random
from typing import Any

from lockstep.stepper.model.controller_inference import Occasions
from lockstep.stepper.model.events import (
    Began,
    BrokerEnded,
    Decided,
    GaveUp,
    Named,
    RequestSent,
    ResponseArrived,
    Surrounded,
)
from lockstep.stepper.model.hidden_transitions import machine
from lockstep.stepper.model.state import PartitionPlaces, PendingRequest, Response, before_creation, replaced
from lockstep.stepper.model.tracker import BeliefTracker, unheard
from lockstep_model.controller import Controller, alter_partition, create, fence
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.replica import restart
from lockstep_model.registration import AlterPartition, BrokerRegistration
from lockstep_model.replication.state import AlterPartitionResponse, Metadata, knowing, tidied
from lockstep_model.state_machine import Machine, State


class Pretended:
    """What is really the case, and who follows it."""

    def __init__(self, parameters: Parameters, believed: Parameters, *, seed: int, brokers: int = 3) -> None:
        self.parameters = parameters
        self.draw = random.Random(seed)
        self.places = PartitionPlaces(brokers)
        registered = tuple((broker, BrokerRegistration(epoch=10 + broker)) for broker in range(brokers))
        nothing = Controller(brokers=registered)
        self.state: State = before_creation(nothing)
        self.machine: Machine = machine(self.state, parameters)
        created, _ = create(parameters, nothing, tuple(range(brokers)))
        self._decided(created)
        self.tracker = BeliefTracker(believed, Began(controller=created))

    @property
    def metadata(self) -> Metadata:
        metadata: Metadata = self.state[PartitionPlaces.METADATA]
        return metadata

    def happen(self, most: int = 8) -> None:
        """Some things happen unseen, and the controller grants what leaders ask for, now and then."""
        for _ in range(self.draw.randint(0, most)):
            enabled = [state for _, state in self.machine.enabled(self.state) if state != self.state]
            if enabled:
                self.state = self.draw.choice(enabled)
            if self.draw.random() < 0.3:
                self.grant()

    def grant(self) -> None:
        """The controller answers whoever has asked it."""
        for broker in self.places.brokers:
            asked = self.state[self.places.altering(broker)]
            if isinstance(asked, AlterPartition):
                after, error = alter_partition(self.parameters, self.metadata.controller, asked)
                if error is Error.NONE:
                    self.decide(after)
                    self.put({self.places.altering(broker): AlterPartitionResponse(asked, after.partition)})

    def decide(self, controller: Controller, silent: frozenset[int] = frozenset()) -> None:
        self._decided(controller)
        self.tracker.tell(Decided(controller=controller, occasions=Occasions(silent=silent)))

    def _decided(self, controller: Controller) -> None:
        self.put({PartitionPlaces.METADATA: tidied(self.metadata._replace(log=(*self.metadata.log, controller)))})

    def ask(self, broker: int, request: Any) -> Any:
        """Ask, wait for the answer, and tell the one who follows."""
        place = self.places.operation(0)
        self.put({place: PendingRequest(broker, request)})
        for _ in range(500):
            if isinstance(self.state[place], Response):
                break
            self.happen(1)
        else:
            self.tracker.tell(RequestSent(slot=0, broker=broker, request=Named.of(request)))
            self.tracker.tell(GaveUp(slot=0))
            self.put({place: None})
            return None
        reply = self.state[place].reply
        self.put({place: None})
        self.tracker.tell(RequestSent(slot=0, broker=broker, request=Named.of(request), reply=Named.of(reply)))
        self.tracker.tell(ResponseArrived(slot=0, reply=Named.of(reply)))
        return reply

    def around(self, **changes: Any) -> None:
        around = self.state[PartitionPlaces.SURROUNDINGS]._replace(**changes)
        self.put({PartitionPlaces.SURROUNDINGS: around})
        self.tracker.tell(Surrounded(surroundings=around))

    def kill(self, broker: int) -> None:
        process = self.state[self.places.broker(broker)]
        replica = process.replica
        checkpoint = self.draw.randint(replica.log.start, replica.high_watermark)
        stopped = restart(replica, replica.broker_epoch, end=replica.log.end, high_watermark=checkpoint)
        silence = dict.fromkeys(unheard(self.places, broker))
        broken = {self.places.broker(broker): process._replace(replica=stopped, running=False)}
        self.put({**silence, **broken, PartitionPlaces.METADATA: knowing(self.metadata, broker, None)})
        self.tracker.tell(BrokerEnded(broker=broker, clean=False))

    def session_ends(self, broker: int) -> None:
        self.decide(fence(self.parameters, self.metadata.controller, broker), silent=frozenset({broker}))

    def put(self, parts: dict[int, Any]) -> None:
        self.state = replaced(self.state, parts)
