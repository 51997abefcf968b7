"""TLS, SASL and ACLs of a cluster: the secrets made for it, and the security properties of its nodes."""

from lockstep.cluster.security.secrets import KIND, Secrets, heal_secrets

__all__ = ["KIND", "Secrets", "heal_secrets"]
