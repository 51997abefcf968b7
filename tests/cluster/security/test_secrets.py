"""Secrets are private while they are there, and gone when their cluster is."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.clients.access import Access
from lockstep.clients.properties import read_client_properties
from lockstep.cluster.security import Secrets
from lockstep.errors import UsageError
from lockstep.heal import heal, owning
from lockstep.recovery.ledger import LEDGER, Ledger, read_ledger
from lockstep.spec.cluster import ClusterSpec, Listener, Mechanism, Security

SPEC = ClusterSpec(brokers=1, security=Security(tls=True, sasl=Mechanism.SCRAM_512, users=("alice",)))
HOSTS = {node.name: ["127.0.0.1"] for node in SPEC.nodes}

CRASH = """
import os, signal
from pathlib import Path
from lockstep.heal import owning
from lockstep.cluster.security import Secrets
from tests.cluster.security.test_secrets import HOSTS, SPEC
with owning(Path(os.environ["DIRECTORY"])) as ledger:
    print(Secrets.make(SPEC, HOSTS, ledger).directory, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_only_their_owner_can_read_them(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        secrets = Secrets.make(SPEC, HOSTS, ledger)
    assert stat.S_IMODE(secrets.directory.stat().st_mode) == 0o700
    files = list(secrets.directory.iterdir())
    assert {"ca.pem", "broker-1.pem", "controller-100.pem", "alice.properties"} <= {file.name for file in files}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert heal(tmp_path).removed == (f"secrets ({secrets.directory})",)


def test_they_go_with_their_run(tmp_path: Path) -> None:
    with owning(tmp_path) as ledger:
        secrets = Secrets.make(SPEC, HOSTS, ledger)
        assert secrets.directory.exists()
    assert not secrets.directory.exists()


def test_heal_removes_what_a_killed_harness_left(tmp_path: Path) -> None:
    crashed = subprocess.run(
        [sys.executable, "-c", CRASH],
        env=os.environ | {"DIRECTORY": str(tmp_path)},
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    directory = Path(crashed.stdout.strip())
    assert crashed.returncode == -signal.SIGKILL
    assert directory.is_dir()
    assert heal(tmp_path).removed == (f"secrets ({directory})",)
    assert not directory.exists()
    assert not any(entry.open for entry in read_ledger(tmp_path / LEDGER))


def test_an_open_cluster_has_none(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        secrets = Secrets.make(ClusterSpec(), {}, ledger)
        assert list(ledger.open_entries()) == []
    assert not secrets.directory.exists()
    assert secrets.access("a:1") == Access(bootstrap="a:1")
    assert (secrets.scram_users(), secrets.znodes()) == ((), ())


def test_every_user_gets_a_file_for_work_by_hand(tmp_path: Path) -> None:
    with owning(tmp_path) as ledger:
        secrets = Secrets.make(SPEC, HOSTS, ledger)
        by_hand = read_client_properties(secrets.client_properties("alice"), "a:1")
        assert by_hand == secrets.access("a:1", user="alice")


def test_controllers_are_reached_with_plain(tmp_path: Path) -> None:
    with owning(tmp_path) as ledger:
        secrets = Secrets.make(SPEC, HOSTS, ledger)
        assert secrets.access("a:1").mechanism is Mechanism.SCRAM_512
        assert secrets.access("a:1", listener=Listener.CONTROLLER).mechanism is Mechanism.PLAIN


def test_an_unknown_user_is_said_so(tmp_path: Path) -> None:
    with owning(tmp_path) as ledger:
        secrets = Secrets.make(SPEC, HOSTS, ledger)
        with pytest.raises(UsageError, match="there is no user bob in this cluster: it has broker, lockstep, alice"):
            secrets.access("a:1", user="bob")


def test_nothing_that_is_shown_shows_them(tmp_path: Path) -> None:
    with owning(tmp_path) as ledger:
        secrets = Secrets.make(SPEC, HOSTS, ledger)
        shown = f"{secrets!r} {secrets.access('a:1')!r} {secrets.scram_users()!r}"
        for node in SPEC.nodes:
            shown += repr(secrets.node_properties(node, secrets.directory, zk_mode=False))
    assert "alice" in shown
    assert not [user for user, password in secrets.passwords.items() if password in shown]


@pytest.mark.parametrize(
    ("users", "sentence"),
    [(("Alice",), "'Alice' is not a user name"), (("lockstep",), "user lockstep is there anyway, with every right")],
)
def test_bad_users_are_refused(users: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Security(sasl=Mechanism.PLAIN, users=users)
