"""Codec of requests to the transaction coordinator: InitProducerId, AddPartitionsToTxn, EndTxn."""

from __future__ import annotations

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from lockstep.clients.wire import transactions as wire
from lockstep.clients.wire.connection import Connection, Pending
from lockstep.clients.wire.records import NO_PRODUCER
from lockstep.clients.wire.records import Producer as WireProducer
from lockstep.stepper.driver.actions import AddPartition, EndTransaction, InitProducer, Transact
from lockstep.stepper.driver.codec import Exchange
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.model.transactions import PARTITION
from lockstep_model.errors import Error
from lockstep_model.transactions.coordinator import AddPartitionsToTxn, Answer, EndTxn, InitProducerId, Producer
from lockstep_model.transactions.versions import RAISING_END_TXN

TIMEOUT_MS = 600_000
"""transaction.timeout.ms, longer than any walk: the coordinator never aborts a transaction for its age."""
INIT_VERSION, ADD_VERSION = 5, 3
"""Versions of InitProducerId and AddPartitionsToTxn that the client sends."""


def transact(step: Transact, topic: str, client: TransactionalClient) -> Exchange:
    match step:
        case InitProducer():
            return _init_producer(step, client)
        case AddPartition():
            return _add_partition(step, topic, client)
        case EndTransaction():
            return _end(step, client)


def _init_producer(step: InitProducer, client: TransactionalClient) -> Exchange:
    expected = None if step.identity is None else client.as_said(step.identity)
    id_, producer = client.transactional_id, NO_PRODUCER if expected is None else _wire(expected)

    def send(connection: Connection) -> Pending[wire.Initialized]:
        return wire.init_producer_id(connection, id_, producer=producer, timeout_ms=TIMEOUT_MS)

    request = InitProducerId(TIMEOUT_MS, expected, INIT_VERSION)
    return Exchange(request, send, lambda answer: _answer(answer.error, answer.producer))


def _add_partition(step: AddPartition, topic: str, client: TransactionalClient) -> Exchange:
    id_, producer = client.transactional_id, client.as_said(step.identity)
    partition = (topic, PARTITION)

    def send(connection: Connection) -> Pending[Mapping[tuple[str, int], ErrorCode]]:
        return wire.add_partitions_to_txn(connection, id_, _wire(producer), [partition])

    request = AddPartitionsToTxn(producer, frozenset({PARTITION}), ADD_VERSION)
    return Exchange(request, send, lambda errors: _answer(errors[partition]))


def _end(step: EndTransaction, client: TransactionalClient) -> Exchange:
    id_, producer, version = client.transactional_id, client.as_said(step.identity), client.version

    def send(connection: Connection) -> Pending[wire.Ended]:
        return wire.end_txn(connection, id_, _wire(producer), commit=step.commit, transaction_version=version)

    request = EndTxn(producer, step.commit, RAISING_END_TXN if version >= 2 else RAISING_END_TXN - 1)
    return Exchange(request, send, lambda answer: _answer(answer.error, answer.producer))


def _wire(producer: Producer) -> WireProducer:
    return WireProducer(id=producer.id, epoch=producer.epoch)


def _answer(error: ErrorCode, producer: WireProducer | None = None) -> Answer:
    told = Error(int(error))
    if told is not Error.NONE or producer is None:
        return Answer(told)
    return Answer(told, Producer(producer.id, producer.epoch))
