"""Containers and networks, each with an entry in the ledger, so that `lockstep heal` finds exactly these after a crash.

Each carries two labels: the run it belongs to, for people, and the token of its ledger entry, for healing. A container
or network is removed by the id in the ledger, or, when its owner died before noting the id, by that token; never by
name. The engine may still be busy with what a dead owner asked for, so what was asked for just now is waited for.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

from docker import DockerClient as Sdk
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.models.networks import Network
from testcontainers.core.docker_client import DockerClient

from lockstep.cluster.docker.engine import connect, engine_errors
from lockstep.recovery.ledger import Entry, Ledger
from lockstep.wait import WaitTimeout, wait_until

CONTAINER = "container"
NETWORK = "network"
RUN_LABEL = "lockstep.run"
TOKEN_LABEL = "lockstep.token"  # noqa: S105 - not a secret: it marks whose a container is
CONFLICT = 409
GONE_S = 30.0
SETTLE_S = 10.0
"""How long an engine on a busy machine may take over a container that was asked for."""

Made = TypeVar("Made", Container, Network)


class Resources:
    """What one cluster has made in the engine."""

    def __init__(self, engine: DockerClient, ledger: Ledger, run: str) -> None:
        self._engine = engine
        self._ledger = ledger
        self._run = run
        self._entries: list[Entry] = []
        with engine_errors("describing itself"):
            self.user = container_user(self.client.info())

    @property
    def client(self) -> Sdk:
        client: Sdk = self._engine.client
        return client

    def network(self, name: str) -> Network:
        """A bridge network of our own."""

        def create(full_name: str, labels: dict[str, str]) -> Network:
            network: Network = self._engine.client_networks_create(full_name, {"driver": "bridge", "labels": labels})
            return network

        return self._make(NETWORK, name, create)

    def container(self, name: str, image: str, command: list[str], **options: Any) -> Container:
        """A container that is there but not started; `options` are those of the Docker SDK."""

        def create(full_name: str, labels: dict[str, str]) -> Container:
            # testcontainers looks for a network to join unless one is named, if only as None.
            settings = {"network": None, **options}
            container: Container = self._engine.create(image, command, labels=labels, name=full_name, **settings)
            return container

        return self._make(CONTAINER, name, create)

    def remove(self, container: Container) -> None:
        """Remove one container, to make another of the same name."""
        for entry in self._entries:
            if entry.open and entry.fields.get("id") == container.id:
                _heal_container(self.client, entry)

    def remove_all(self) -> None:
        """Remove everything made here: containers all at once, then networks; safe twice."""
        containers = [entry for entry in self._entries if entry.kind == CONTAINER and entry.open]
        if containers:
            with ThreadPoolExecutor(len(containers)) as pool:
                list(pool.map(lambda entry: _heal_container(self.client, entry), containers))
        for entry in self._entries:
            if entry.kind == NETWORK and entry.open:
                _heal_network(self.client, entry)

    def close(self) -> None:
        self.client.close()

    def _make(self, kind: str, name: str, create: Callable[[str, dict[str, str]], Made]) -> Made:
        token = uuid.uuid4().hex
        entry = self._ledger.intent(kind, name=name, token=token, asked_ns=time.monotonic_ns())
        self._entries.append(entry)
        # The run's name tells a person whose it is, the token keeps two of one name apart.
        full_name = re.sub(r"[^A-Za-z0-9_.-]", "-", f"lockstep-{self._run}-{name}-{token[:8]}")
        with engine_errors(f"creating {kind} {full_name}"):
            try:
                made = create(full_name, {RUN_LABEL: self._run, TOKEN_LABEL: token})
            except APIError as error:  # refused; after any other error it may exist, and the entry stays open
                entry.failed(error=str(error))
                raise
        entry.effect(id=made.id)
        return made


def container_user(engine: dict[str, Any]) -> str:
    """The user of a container's processes, so that their files are ours; a rootless engine maps its root to us."""
    rootless = any("name=rootless" in option for option in engine.get("SecurityOptions") or ())
    return "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"


def heal_container(entry: Entry) -> list[str]:
    """Remove the container of a ledger entry whose owner is gone, and nothing else; tells what was removed."""
    with closing(connect().client) as client:
        return _heal_container(client, entry)


def heal_network(entry: Entry) -> list[str]:
    """Remove the network of a ledger entry whose owner is gone, and nothing else; its containers go first."""
    with closing(connect().client) as client:
        return _heal_network(client, entry)


def _heal_container(client: Sdk, entry: Entry) -> list[str]:
    return _heal(entry, partial(_containers_with, client), partial(_remove_container, client))


def _heal_network(client: Sdk, entry: Entry) -> list[str]:
    return _heal(entry, partial(_networks_with, client), partial(_remove_network, client))


def _heal(entry: Entry, labelled: Callable[[str], list[str]], remove: Callable[[str], bool]) -> list[str]:
    name = entry.fields["name"]
    with engine_errors(f"removing {entry.kind} {name}"):
        removed = [id_ for id_ in _ids(entry, labelled) if remove(id_)]
    entry.healed()
    return [f"{name} ({entry.kind} {id_[:12]})" for id_ in removed]


def _ids(entry: Entry, labelled: Callable[[str], list[str]]) -> list[str]:
    """What an entry is about, in the engine's words."""
    if "id" in entry.fields:
        return [entry.fields["id"]]
    asked_ago_s = (time.monotonic_ns() - entry.fields["asked_ns"]) / 1e9
    left_s = min(SETTLE_S, SETTLE_S - asked_ago_s)
    try:
        return wait_until(
            lambda: labelled(entry.fields["token"]), timeout_s=max(0.0, left_s), what=entry.fields["name"]
        )
    except WaitTimeout:
        return []


def _remove_container(client: Sdk, id_: str) -> bool:
    """Remove it; False when it was gone already."""

    def gone() -> bool:
        try:
            client.api.remove_container(id_, v=True, force=True)
        except NotFound:
            return True
        except APIError as error:
            if error.status_code != CONFLICT:  # the engine is still starting or removing it for another client
                raise
            return False
        return True

    try:
        client.api.inspect_container(id_)
    except NotFound:
        return False
    return wait_until(gone, timeout_s=GONE_S, what=f"container {id_[:12]} to be gone")


def _remove_network(client: Sdk, id_: str) -> bool:
    try:
        client.api.remove_network(id_)
    except NotFound:
        return False
    return True


def _containers_with(client: Sdk, token: str) -> list[str]:
    listed = client.api.containers(all=True, filters={"label": f"{TOKEN_LABEL}={token}"})
    return [container["Id"] for container in listed]


def _networks_with(client: Sdk, token: str) -> list[str]:
    listed = client.api.networks(filters={"label": f"{TOKEN_LABEL}={token}"})
    return [network["Id"] for network in listed]
