"""Clusters: a `ClusterSpec` in, running nodes out."""

from lockstep.spec.cluster import ClusterSpec, Listener, Mode

__all__ = ["ClusterSpec", "Listener", "Mode"]
