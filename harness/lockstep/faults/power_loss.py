"""Brokers whose machines lose power: unflushed records are gone, which the brokers find out in log recovery."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from lockstep.clients.wire.configs import Resource, ResourceType, ask_settings
from lockstep.clients.wire.refusals import Refused
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.cluster.storage.segments import Loss, partition_logs, recovery_points
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.membership import missed, returned
from lockstep.faults.support.node_log import Words
from lockstep.faults.support.roles import node_of
from lockstep.history.lines import CRASHED, LOSSY
from lockstep.plan.targets import FollowerOf, LeaderOf, OneBroker, Target, WholeCluster
from lockstep.wait import wait_until

FLUSH = "flush.messages"
ANSWERS_S = 30.0


class PowerLossSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the logs is on disk when the power goes."""

    keep: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    """The share of each log's unflushed bytes that the operating system had already written to disk."""


class _PowerLoss:
    """Proven by the LEOs of the dead brokers before and after, and by their absence from the others' metadata.

    Records count as flushed below the checkpointed recovery point, and as far as `flush.messages` guarantees.
    """

    def __init__(self, cluster: Cluster, nodes: Sequence[Node], settings: PowerLossSettings) -> None:
        self._cluster = cluster
        self._nodes = tuple(nodes)
        self._keep = settings.keep
        self._losses: dict[str, dict[str, Loss]] = {}

    @property
    def resolved(self) -> str:
        return ", ".join(node.name for node in self._nodes)

    def inject(self) -> Proof:
        for node in self._nodes:
            if node.state() is not NodeState.RUNNING:
                raise FaultError(f"{node.name} is {node.state()} already")
        unflushed = self._unflushed_most()
        identities = {node.name: node.identity for node in self._nodes}
        with ThreadPoolExecutor(len(self._nodes)) as pool:  # the power goes for all of them at once
            list(pool.map(lambda node: node.kill(), self._nodes))
        self._losses = {node.name: self._cut(node, unflushed) for node in self._nodes}
        return {
            "killed": identities,
            "bytes_cut": sum(loss.size for loss in self._all_losses.values()),
            CRASHED: [node.name for node in self._nodes],
            LOSSY: [node for node, losses in self._losses.items() if losses],
        }

    def bit(self) -> Proof:
        if running := [node.name for node in self._nodes if node.state() is NodeState.RUNNING]:
            raise FaultError(f"{', '.join(running)} still runs")
        if not self._all_losses:
            raise FaultError(f"{self.resolved} lost nothing: all that was written had been flushed or reached the disk")
        return {
            "log_ends_before": {log: loss.end_before for log, loss in self._all_losses.items()},
            "log_ends_cut_to": {log: loss.end_after for log, loss in self._all_losses.items()},
        }

    def heal(self) -> Proof:
        words = {node.name: Words(node) for node in self._nodes}
        for node in self._nodes:
            if node.state() is NodeState.STOPPED:
                node.start()
        back = [returned(self._cluster, node) for node in self._nodes]
        return {
            "identities": {node.name: node.identity for node in self._nodes},
            "log_ends_came_back_with": {
                f"{node.name} {log}": end
                for node in self._nodes
                for log, end in _loaded(words[node.name], self._losses.get(node.name, {})).items()
            },
            "in_isr_of": sorted({log for proof in back for log in proof["in_isr_of"]}),
            "back_after_ms": sum(proof["back_after_ms"] for proof in back),
        }

    @property
    def _all_losses(self) -> dict[str, Loss]:
        return {f"{node} {log}": loss for node, losses in self._losses.items() for log, loss in losses.items()}

    def _unflushed_most(self) -> dict[str, int]:
        """By topic: how many records at most a broker keeps without flushing them."""
        directories = [directory for node in self._nodes for directory in self._directories(node)]
        topics = {log.topic for directory in directories for log in partition_logs(directory)}
        found = {}
        for topic in topics:
            with suppress(Refused):  # it has just been deleted: nothing of it needs to be lost
                found[topic] = self._flush_messages(topic)
        return {topic: int(value) - 1 for topic, value in found.items() if value is not None}

    def _flush_messages(self, topic: str) -> str | None:
        address, access = self._nodes[0].direct, self._cluster.access()
        resource = Resource(type=ResourceType.TOPIC, name=topic)
        answer = wait_until(
            lambda: ask_settings(address, resource, (FLUSH,), access=access),
            timeout_s=ANSWERS_S,
            what=f"{FLUSH} of {topic}",
            retry_on=(OSError,),
        )
        return answer[FLUSH].value

    def _cut(self, node: Node, unflushed: Mapping[str, int]) -> dict[str, Loss]:
        losses = {}
        for directory in self._directories(node):
            checkpointed = recovery_points(directory)
            for log in partition_logs(directory):
                promised = log.end() - unflushed.get(log.topic, 0)
                flushed = max(checkpointed.get(log.name, 0), promised)
                if loss := log.cut(flushed=flushed, keep=self._keep):
                    losses[log.name] = loss
        return losses

    def _directories(self, node: Node) -> list[Path]:
        return self._cluster.log_directories(node.spec)


@fault(
    name="power-loss",
    summary="SIGKILL a broker and cut its logs back to what was flushed; healed by starting it: it catches up",
    targets=(LeaderOf, FollowerOf, OneBroker),
    settings=PowerLossSettings,
    takes=1,
)
class PowerLoss(_PowerLoss):
    """One broker: the other replicas have the records that it lost, and it fetches them again."""

    def __init__(self, cluster: Cluster, target: Target, settings: PowerLossSettings) -> None:
        super().__init__(cluster, [node_of(cluster, target)], settings)

    def bit(self) -> Proof:
        return super().bit() | missed(self._cluster, self._nodes[0])


@fault(
    name="power-loss-all",
    summary="SIGKILL all brokers at once and cut their logs back to what was flushed; healed by starting them",
    targets=(WholeCluster,),
    settings=PowerLossSettings,
    takes=5,
    beyond="every copy of an acknowledged record may be lost, as no broker had flushed it",
)
class PowerLossOfAll(_PowerLoss):
    """All brokers at once: records that no broker had flushed are lost."""

    def __init__(self, cluster: Cluster, _: WholeCluster, settings: PowerLossSettings) -> None:
        super().__init__(cluster, [cluster.broker(id_) for id_ in cluster.broker_ids], settings)


def _loaded(words: Words, losses: Mapping[str, Loss]) -> dict[str, int]:
    """Where each cut log ended when the broker had loaded it, in the broker's own words."""
    told = {
        log: words.find(rf"partition={re.escape(log)}, .*Loading producer state till offset (\d+)") for log in losses
    }
    return {log: int(ends[-1]) for log, ends in told.items() if ends}
