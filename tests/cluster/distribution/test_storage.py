"""Formatting by writing files is only right if it gives what Kafka's own tool gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from lockstep.cluster.distribution import Distribution, ScramUser, random_id, storage
from lockstep.cluster.distribution.storage import BOOTSTRAP, META, STORAGE_TOOL, read_meta
from lockstep.errors import ClusterError, EnvironmentError_, UsageError
from tests.cluster.distribution.nodes import BROKER, CONTROLLER, same_as_the_storage_tool, without_times

ALICE = ScramUser(mechanism="SCRAM-SHA-256", name="alice", password="wonder-land_7")
BOB = ScramUser(mechanism="SCRAM-SHA-512", name="bob", password="the-builder_8")


@pytest.mark.parametrize("properties", [CONTROLLER, BROKER], ids=["controller", "broker"])
def test_the_same_as_the_storage_tool_writes(kafka: Distribution, properties: str, tmp_path: Path) -> None:
    same_as_the_storage_tool(kafka, properties, {}, tmp_path)


def test_feature_levels_are_those_asked_for(kafka: Distribution, tmp_path: Path) -> None:
    features = {"transaction.version": 0, "eligible.leader.replicas.version": 0}
    same_as_the_storage_tool(kafka, CONTROLLER, features, tmp_path)
    assert without_times(kafka.learn(features).bootstrap) != without_times(kafka.learn().bootstrap)


def test_feature_levels_are_learnt_once(kafka: Distribution, tmp_path: Path) -> None:
    asked = _Asked(kafka)
    for _ in range(2):
        learnt = storage.learn(kafka.version, asked, tmp_path, {"transaction.version": 1}, ())
    assert len(asked.arguments) == 1
    storage.learn(kafka.version, asked, tmp_path, {"transaction.version": 0}, ())
    assert len(asked.arguments) == 2
    assert without_times(learnt.bootstrap) != without_times(kafka.learn().bootstrap)


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ({"foo.version": 1}, "cannot be formatted with foo.version=1: Unsupported feature: foo.version. Supported"),
        (
            {"transaction.version": 99},
            "cannot be formatted with transaction.version=99: No feature:transaction.version",
        ),
        ({"metadata.version": 99}, "No MetadataVersion with feature level 99"),
        ({"../evil": 1}, "'../evil' is not the name of a Kafka feature"),
    ],
)
def test_a_feature_or_level_it_does_not_know_is_wrong_usage(
    kafka: Distribution, features: dict[str, int], sentence: str, tmp_path: Path
) -> None:
    elsewhere = dataclasses.replace(kafka, trained=tmp_path)
    with pytest.raises(UsageError) as caught:
        elsewhere.learn(features)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.rglob("*") if not path.name.endswith(".lock")] in ([], ["formats"])


def test_users_are_in_the_metadata_and_their_passwords_nowhere(
    kafka: Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked = _Asked(kafka)
    learnt = storage.learn(kafka.version, asked, tmp_path / "learnt", {}, [ALICE, BOB])
    assert list(tmp_path.iterdir()) == []
    assert b"alice" in learnt.bootstrap
    assert b"bob" in learnt.bootstrap
    for secret in (ALICE.password, BOB.password):
        assert secret.encode() not in learnt.bootstrap
        assert secret not in repr((learnt, ALICE, BOB))
        assert secret not in " ".join(word for words in asked.arguments for word in words)


def test_a_refusal_does_not_tell_a_password(kafka: Distribution, tmp_path: Path) -> None:
    wrong = ScramUser(mechanism="SCRAM-SHA-1", name="alice", password="wonder-land_7")
    with pytest.raises(EnvironmentError_, match="mechanism SCRAM-SHA-1 is not supported"):
        kafka.learn(scram=[wrong])

    def talkative(_: Path, __: Sequence[str]) -> list[str]:
        return ["sh", "-c", "cat; exit 1"]

    with pytest.raises(EnvironmentError_, match=r'name=alice,password="\*\*\*"'):
        storage.learn(kafka.version, talkative, tmp_path, {}, [wrong])


@pytest.mark.parametrize(("name", "password"), [("alice", 'a"],[name=eve'), ("a,b", "fine")])
def test_what_the_tool_would_misread_is_refused_without_telling_it(name: str, password: str) -> None:
    with pytest.raises(ValueError, match="made of letters") as caught:
        ScramUser(mechanism="SCRAM-SHA-256", name=name, password=password)
    assert password not in str(caught.value)


def test_every_directory_gets_its_own_id_and_is_formatted_once(kafka: Distribution, tmp_path: Path) -> None:
    for name in ("one", "two"):
        kafka.learn().write(tmp_path / name, cluster_id=random_id(), node_id=1)
    assert read_meta(tmp_path / "one")["directory.id"] != read_meta(tmp_path / "two")["directory.id"]
    before = (tmp_path / "one" / META).read_bytes()
    with pytest.raises(ClusterError, match="already formatted"):
        kafka.learn().write(tmp_path / "one", cluster_id=random_id(), node_id=1)
    assert (tmp_path / "one" / META).read_bytes() == before


def test_one_format_serves_all_nodes_of_a_cluster(kafka: Distribution, tmp_path: Path) -> None:
    learnt, cluster_id = kafka.learn(), random_id()
    for node_id in (1, 2):
        learnt.write(tmp_path / str(node_id), cluster_id=cluster_id, node_id=node_id)
    one, two = read_meta(tmp_path / "1"), read_meta(tmp_path / "2")
    assert (one["node.id"], two["node.id"]) == ("1", "2")
    assert one["cluster.id"] == two["cluster.id"] == cluster_id
    assert (tmp_path / "1" / BOOTSTRAP).read_bytes() == (tmp_path / "2" / BOOTSTRAP).read_bytes()


def test_ids_look_as_kafka_s_do() -> None:
    ids = {random_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(one) == 22 and not one.startswith("-") for one in ids)


class _Asked:
    """The real storage tool, and the command lines with which it was run."""

    def __init__(self, kafka: Distribution) -> None:
        self._kafka = kafka
        self.arguments: list[list[str]] = []

    def __call__(self, work: Path, arguments: Sequence[str]) -> list[str]:
        command = self._kafka.tool(STORAGE_TOOL, *arguments, log_directory=work)
        self.arguments.append(command)
        return command
