"""The security properties of a node. They are kept with the run, so they name secrets and hold none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lockstep.clients.properties import LOGIN_MODULES
from lockstep.spec.cluster import BROKER_USER, OWN_USERS, Listener, Mechanism, NodeSpec, Security

AUTHORITY = "ca.pem"

_SECURED = (Listener.CLIENT, Listener.CLIENT_B, Listener.REPL, Listener.CONTROL, Listener.CONTROLLER)
_KRAFT_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_ZK_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"


def mechanism_of(security: Security, listener: Listener) -> Mechanism | None:
    """The SASL mechanism of a listener. Not SCRAM for controllers: its credentials are metadata, and need a quorum."""
    return Mechanism.PLAIN if security.sasl and listener is Listener.CONTROLLER else security.sasl


def key_store(node: str) -> str:
    """The file with a node's key and certificate."""
    return f"{node}.pem"


def login_file(mechanism: Mechanism) -> str:
    """The file with what nodes are told about users of a mechanism (JAAS)."""
    return f"{mechanism.lower()}.jaas"


def login(mechanism: Mechanism, passwords: Mapping[str, str]) -> str:
    """The JAAS login of the node itself; for PLAIN also the users that it accepts."""
    options = {"username": BROKER_USER, "password": passwords[BROKER_USER]}
    if mechanism is Mechanism.PLAIN:
        options |= {f"user_{user}": password for user, password in passwords.items()}
    rendered = " ".join(f'{name}="{value}"' for name, value in options.items())
    return f"{LOGIN_MODULES[mechanism]} required {rendered};"


def node_properties(security: Security, node: NodeSpec, inside: Path, *, zk_mode: bool) -> dict[str, str]:
    """All of it for one node; `inside` is the cluster's secrets as the node sees them."""
    rendered = {"listener.security.protocol.map": ",".join(f"{name}:{security.protocol}" for name in _SECURED)}
    if security.tls:
        rendered |= _tls(node, inside)
    if security.sasl is not None:
        rendered |= _sasl(security, security.sasl, inside) | _authorization(zk_mode=zk_mode)
    return rendered


def _tls(node: NodeSpec, inside: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(inside / key_store(node.name)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(inside / AUTHORITY),
    }


def _sasl(security: Security, sasl: Mechanism, inside: Path) -> dict[str, str]:
    rendered = {
        "config.providers": "directory",
        "config.providers.directory.class": _PROVIDER,
        "sasl.enabled.mechanisms": sasl.value,
        "sasl.mechanism.inter.broker.protocol": sasl.value,
        "sasl.mechanism.controller.protocol": Mechanism.PLAIN.value,
        f"listener.name.{Listener.CONTROLLER.lower()}.sasl.enabled.mechanisms": Mechanism.PLAIN.value,
    }
    for listener in _SECURED:
        mechanism = mechanism_of(security, listener)
        assert mechanism is not None
        name = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
        rendered[name] = f"${{directory:{inside}:{login_file(mechanism)}}}"
    return rendered


def _authorization(*, zk_mode: bool) -> dict[str, str]:
    return {
        "authorizer.class.name": _ZK_AUTHORIZER if zk_mode else _KRAFT_AUTHORIZER,
        "super.users": ";".join(f"User:{user}" for user in OWN_USERS),
        "allow.everyone.if.no.acl.found": "false",
    }
