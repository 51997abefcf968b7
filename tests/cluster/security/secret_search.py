"""A search for passwords and private keys in files where none may be."""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from lockstep.cluster.security import Secrets


def needles(secrets: Secrets) -> dict[str, bytes]:
    """Every password and private key in each form in which it could have been written down."""
    found = {}
    for user, password in secrets.passwords.items():
        found[f"password of {user}"] = password.encode()
        found[f"password of {user}, encoded"] = base64.b64encode(password.encode())
    for store in secrets.directory.glob("*.pem"):
        if b"PRIVATE KEY" in (content := store.read_bytes()):
            key = load_pem_private_key(content, password=None)
            found[f"key in {store.name}"] = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
            found[f"key in {store.name}, encoded"] = content.splitlines()[1]
    return found


def found_below(directory: Path, secrets: dict[str, bytes]) -> list[tuple[str, str]]:
    """Where which secret is: relative path, and what was found there."""
    return [
        (str(path.relative_to(directory)), what)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
        for what, secret in secrets.items()
        if secret in path.read_bytes()
    ]
