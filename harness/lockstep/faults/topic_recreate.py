"""A topic deleted and made again under its old name: another topic, whatever its name says."""

from __future__ import annotations

from lockstep.clients.wire.configs import Resource, ResourceType, ask_settings
from lockstep.clients.wire.topics import create_topic
from lockstep.cluster.cluster import Cluster
from lockstep.errors import ClusterError, FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.administration import administer
from lockstep.faults.support.topics import delete, topic_of, wait_led
from lockstep.plan.targets import OneTopic, WholeCluster
from lockstep.wait import wait_until

MADE_S = 60.0


@fault(
    name="topic-recreate",
    summary="Delete a topic and make it again with the same name; a topic of its own unless one is named",
    targets=(OneTopic, WholeCluster),
    beyond="every record of the topic is deleted",
)
class TopicRecreate:
    """Proven by the topic id (KIP-516), which every broker that answers must see changed."""

    def __init__(self, cluster: Cluster, target: OneTopic | WholeCluster) -> None:
        self._cluster = cluster
        self._topic = topic_of(cluster, target, "topic-recreate")
        self._id_before = ""
        self._partitions = 0
        self._replication = 0
        self._config: dict[str, str] = {}

    @property
    def resolved(self) -> str:
        return self._topic.name

    def inject(self) -> Proof:
        self._topic.prepare()
        self._remember()
        gone = delete(self._cluster, self._topic.name)
        if gone["deletion"] != "done":
            raise FaultError(f"{self._topic.name} is not deleted while a broker with a replica of it is down")
        self._create()
        return {"topic": self._topic.name, "topic_id_before": self._id_before, "was_unknown_to": gone["unknown_to"]}

    def bit(self) -> Proof:
        after = self._wait_made()
        if after == self._id_before:
            raise FaultError(f"{self._topic.name} still has the id {after}")
        return {"topic_id_after": after, "partitions": self._partitions}

    def heal(self) -> Proof:
        """The records do not come back. Healing ensures that the topic exists and is in sync."""
        if not self._id_before:
            return self._topic.done()
        if not any(view.partitions for view in self._cluster.ask_all((self._topic.name,)).values()):
            self._create()
        made = {"topic_id": self._wait_made()}
        return made | (self._topic.done() or {"undone": False, "why": "the records of the deleted topic are gone"})

    def _remember(self) -> None:
        name = self._topic.name
        before = self._cluster.leader(name, 0)
        self._id_before, self._replication = before.topic_id, len(before.replicas)
        self._partitions = max(len(view.partitions) for view in self._cluster.ask_all((name,)).values())
        resource = Resource(type=ResourceType.TOPIC, name=name)
        settings = administer(
            self._cluster,
            lambda address, access: ask_settings(address, resource, access=access),
            f"the settings of {name}",
        )
        self._config = {key: setting.own for key, setting in settings.items() if setting.own is not None}

    def _create(self) -> None:
        """The controller may still be busy with the old one, and says that the name is taken."""

        def make() -> bool:
            administer(
                self._cluster,
                lambda address, access: create_topic(
                    address,
                    self._topic.name,
                    partitions=self._partitions,
                    replication=self._replication,
                    config=self._config,
                    access=access,
                ),
                f"{self._topic.name} to be created",
            )
            return True

        wait_until(
            make,
            timeout_s=MADE_S,
            what=f"{self._topic.name} to be made again",
            interval_s=0.5,
            retry_on=(ClusterError,),
        )

    def _wait_made(self) -> str:
        """Its id, once every broker that answers sees the same one and every partition led."""
        name = self._topic.name
        wait_led(self._cluster, name, self._partitions)
        (found,) = {p.topic_id for view in self._cluster.ask_all((name,)).values() for p in view.partitions}
        return found
