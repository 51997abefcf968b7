"""Who may talk to a cluster: the secrets that are made for each one, and what its nodes are told about them."""

from lockstep.cluster.security.secrets import KIND, Secrets, heal_secrets

__all__ = ["KIND", "Secrets", "heal_secrets"]
