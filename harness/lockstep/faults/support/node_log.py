"""A node's server log, from a moment on."""

from __future__ import annotations

import re
from pathlib import Path

from lockstep.cluster.node import Node

LOG = "server.log"


class Words:
    """The lines of a node's server log since this object was made."""

    def __init__(self, node: Node) -> None:
        self._log: Path = node.directory / LOG
        self._from = self._log.stat().st_size if self._log.exists() else 0

    def said(self) -> str:
        with self._log.open(errors="replace") as log:
            log.seek(self._from)
            return log.read()

    def find(self, pattern: str) -> list[str]:
        """The text that the one group of a pattern matched, for each match."""
        return re.findall(pattern, self.said())
