"""How long a step waits for a response."""

from __future__ import annotations

PATIENCE_S = 0.15
"""To a request that may stay open beyond its step."""
ANSWER_S = 10.0
"""To a request that a broker handles at once."""
NOT_YET = "not answered yet"
"""The outcome of a step whose request stays open."""
WAIT_S = 15.0
"""For a condition that a step waits for."""
