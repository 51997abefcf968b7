"""For how long a step waits for an answer."""

from __future__ import annotations

PATIENCE_S = 0.15
"""For one that may take longer."""
ANSWER_S = 10.0
"""For one that may not."""
NOT_YET = "not answered yet"
"""What is seen of a request that stays open."""
