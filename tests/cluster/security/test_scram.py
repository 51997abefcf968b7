"""Stored SCRAM credentials against the exchange that RFC 7677 publishes for `user` with password `pencil`."""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec

from lockstep.cluster.security.scram import znode_credentials
from lockstep.spec.cluster import Mechanism

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
EXCHANGE = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}".encode()
CLIENT_PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SERVER_SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def fields(znode: bytes, mechanism: Mechanism) -> dict[str, str]:
    content = msgspec.json.decode(znode)
    assert content["version"] == 1
    pairs = (pair.partition("=") for pair in content["config"][mechanism].split(","))
    return {name: value for name, _, value in pairs}


def test_a_broker_with_these_credentials_takes_the_published_proof_and_gives_the_published_signature() -> None:
    path, znode = znode_credentials("user", "pencil", Mechanism.SCRAM_256, SALT)
    stored = fields(znode, Mechanism.SCRAM_256)

    assert path == "/config/users/user"
    assert (base64.b64decode(stored["salt"]), stored["iterations"]) == (SALT, "4096")
    stored_key, server_key = base64.b64decode(stored["stored_key"]), base64.b64decode(stored["server_key"])
    signature = hmac.digest(stored_key, EXCHANGE, "sha256")
    client_key = bytes(a ^ b for a, b in zip(CLIENT_PROOF, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == stored_key
    assert hmac.digest(server_key, EXCHANGE, "sha256") == SERVER_SIGNATURE


def test_every_user_has_a_salt_of_its_own_and_no_password_is_readable() -> None:
    znodes = [znode_credentials("user", "pencil", Mechanism.SCRAM_512)[1] for _ in range(2)]
    first, second = (fields(znode, Mechanism.SCRAM_512) for znode in znodes)
    assert first["salt"] != second["salt"]
    assert first["stored_key"] != second["stored_key"]
    assert b"pencil" not in znodes[0] + znodes[1]
