"""SCRAM credentials as ZooKeeper-mode brokers store them: salted, so that they do not reveal the password."""

from __future__ import annotations

import base64

import msgspec
from scramp import ScramMechanism

from lockstep.spec.cluster import Mechanism

ITERATIONS = 4096
"""The least that Kafka takes; passwords that are random need no more."""


def znode_credentials(
    user: str, password: str, mechanism: Mechanism, salt: bytes | None = None, iterations: int = ITERATIONS
) -> tuple[str, bytes]:
    """The znode from which brokers learn a user, with a random salt unless one is given (ScramCredentialUtils)."""
    salt, stored_key, server_key, _ = ScramMechanism(mechanism.value).make_auth_info(password, iterations, salt)
    credential = f"salt={_text(salt)},stored_key={_text(stored_key)},server_key={_text(server_key)}"
    config = {mechanism.value: f"{credential},iterations={iterations}"}
    return f"/config/users/{user}", msgspec.json.encode({"version": 1, "config": config})


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
