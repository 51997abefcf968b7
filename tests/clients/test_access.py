from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.clients.access import Access, SecurityProtocol
from lockstep.errors import UsageError
from lockstep.network.topology import Address
from lockstep.spec.cluster import Mechanism

ALICE = Access(
    bootstrap="127.0.0.1:9092, [::1]:9093",
    protocol=SecurityProtocol.SASL_SSL,
    mechanism=Mechanism.SCRAM_512,
    username="alice",
    password="open sesame",
    ca=Path("ca.pem"),
)


def test_the_password_is_never_shown() -> None:
    assert "alice" in repr(ALICE)
    assert "sesame" not in f"{ALICE!r} {ALICE}"


def test_librdkafka_is_told_everything() -> None:
    assert ALICE.librdkafka() == {
        "bootstrap.servers": "127.0.0.1:9092, [::1]:9093",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "ca.pem",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "open sesame",
    }


def test_librdkafka_is_told_no_more_than_the_protocol_needs() -> None:
    plain = Access(bootstrap="a:1", mechanism=Mechanism.PLAIN, username="alice", password="x", ca=Path("ca.pem"))
    assert plain.librdkafka() == {"bootstrap.servers": "a:1", "security.protocol": "PLAINTEXT"}


def test_bootstrap_servers_one_by_one() -> None:
    assert ALICE.addresses == (Address(host="127.0.0.1", port=9092), Address(host="::1", port=9093))


@pytest.mark.parametrize("bootstrap", ["", "localhost", "localhost:kafka", ":9092", "a:1,,b:2"])
def test_what_is_no_list_of_servers_is_refused(bootstrap: str) -> None:
    with pytest.raises(UsageError, match="write host:port"):
        _ = Access(bootstrap=bootstrap).addresses


@pytest.mark.parametrize("missing", ["mechanism", "username", "password"])
def test_sasl_needs_a_mechanism_a_user_and_a_password(missing: str) -> None:
    given = {"mechanism": Mechanism.PLAIN, "username": "alice", "password": "x"}
    del given[missing]
    with pytest.raises(UsageError, match="SASL_PLAINTEXT needs a SASL mechanism, a user name and a password"):
        Access(bootstrap="a:1", protocol=SecurityProtocol.SASL_PLAINTEXT, **given)  # type: ignore[arg-type]
