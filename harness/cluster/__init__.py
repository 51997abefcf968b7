"""Clusters: a `ClusterSpec` in, running nodes out."""

from harness.cluster.spec import ClusterSpec, Listener, Mode

__all__ = ["ClusterSpec", "Listener", "Mode"]
