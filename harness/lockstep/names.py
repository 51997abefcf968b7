"""Names that a user may have misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """How an error message about an unknown name ends: with the nearest known name, or with all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(names)}"
