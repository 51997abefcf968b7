"""An authority for one cluster, and a certificate for each of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


def issue(hosts: Mapping[str, Iterable[str]]) -> tuple[bytes, dict[str, bytes]]:
    """The authority's certificate, and for each node its key and certificate in one PEM, as Kafka reads it.

    `hosts` are the names and addresses by which each node is reached, beside its own name. The authority's key is
    not kept, so no further certificate can be issued for this cluster.
    """
    authority = trustme.CA(organization_name="Lockstep")
    stores = {}
    for node, reached_by in hosts.items():
        leaf = authority.issue_cert(node, *sorted(set(reached_by) - {node}), common_name=node)
        certificates = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        stores[node] = _pkcs8(leaf.private_key_pem.bytes()) + certificates
    return authority.cert_pem.bytes(), stores


def _pkcs8(key: bytes) -> bytes:
    """The only form of a private key that Kafka reads from PEM (DefaultSslEngineFactory.PemStore)."""
    return load_pem_private_key(key, password=None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
