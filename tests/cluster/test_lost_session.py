"""Which brokers are started again: those that lost their session before they had registered, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.cluster.cluster import lost_session

LOST = (
    "org.apache.zookeeper.KeeperException$SessionExpiredException: KeeperErrorCode = Session expired for /brokers/ids",
    "ERROR Error while creating ephemeral at /brokers/ids/2 with return code: SESSIONEXPIRED (kafka.zk.KafkaZkClient)",
)
OTHERS = (
    "WARN Session 0x1, Closing socket connection. Attempting reconnect except it is a SessionExpiredException.",
    "org.apache.kafka.common.config.ConfigException: Invalid value ten for configuration broker.id",
)


@pytest.mark.parametrize(("line", "lost"), [*((line, True) for line in LOST), *((line, False) for line in OTHERS)])
def test_what_a_broker_says_before_it_exits(tmp_path: Path, line: str, lost: bool) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"INFO starting\n{line}\n")
    assert lost_session(log) == lost


def test_one_that_said_nothing_lost_none(tmp_path: Path) -> None:
    assert not lost_session(tmp_path / "server.log")
