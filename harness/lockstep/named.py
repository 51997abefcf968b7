"""Clusters that stay after the command that started them: `lockstep up` and `lockstep down`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec

from lockstep.cluster.backends import Backend, prepare
from lockstep.cluster.description import describe
from lockstep.errors import ClusterError, UsageError
from lockstep.heal import heal, owning
from lockstep.host.java import find_java
from lockstep.host.state import state_dir
from lockstep.names import suggestion
from lockstep.progress import Progress
from lockstep.recovery.ledger import LEDGER, Ledger, LedgerBusy
from lockstep.spec.cluster import ClusterSpec


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A kept cluster, as `up` reports it."""

    name: str
    backend: str
    spec: ClusterSpec
    bootstrap: str
    bootstrap_b: str
    client_config: str | None
    directory: str


def keep(name: str, spec: ClusterSpec, backend: str, progress: Progress) -> Kept:
    """Start a cluster and let it go on; if it does not come up, nothing of it stays."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
        raise UsageError(f"{name!r} is not a cluster name: use up to 41 lower-case letters, digits and dashes")
    directory = _directory(name)
    _require_free(name, directory)
    open_cluster = prepare(spec, Backend(backend), find_java(), progress)
    with owning(directory, keep=True) as ledger:
        cluster = open_cluster(directory, ledger)
        with progress.action(f"starting cluster {name}"):
            cluster.start()
        described = describe(cluster)
    return Kept(
        name=name,
        backend=backend,
        spec=spec,
        bootstrap=described.bootstrap,
        bootstrap_b=described.bootstrap_b,
        client_config=described.client_config,
        directory=str(directory),
    )


def _require_free(name: str, directory: Path) -> None:
    """A name is free when nothing of an earlier cluster is left; what a failed start wrote is removed."""
    if not directory.exists():
        return
    try:
        with Ledger(directory) as ledger:
            taken = any(ledger.open_entries())
    except LedgerBusy:
        taken = True
    if taken:
        raise UsageError(f"there is a cluster {name} already: stop it with lockstep down --name {name}")
    shutil.rmtree(directory)


def drop(name: str) -> tuple[str, ...]:
    """Remove a kept cluster: whatever its ledger names, then its directory."""
    directory = kept_directory(name)
    healed = heal(directory)
    if healed.busy:
        raise UsageError(f"cluster {name} is being started right now: wait for it, or interrupt that command")
    if healed.failed:
        raise ClusterError(f"could not remove {'; '.join(healed.failed)}: try again")
    shutil.rmtree(directory)
    return healed.removed


def kept_directory(name: str) -> Path:
    directory = _directory(name)
    if not (directory / LEDGER).exists():
        known = [path.parent.name for path in _directory("x").parent.glob(f"*/{LEDGER}")]
        hint = suggestion(name, known) if known else "; none is up"
        raise UsageError(f"there is no cluster {name!r}{hint}")
    return directory


def _directory(name: str) -> Path:
    return state_dir() / "clusters" / name
