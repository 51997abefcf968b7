"""Which Maven repository jars come from."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from xml.etree import ElementTree

from jgo.constants import MAVEN_CENTRAL_URL

REPOSITORY_VARIABLE = "LOCKSTEP_MAVEN_REPOSITORY"
_MIRRORS_CENTRAL = {"central", "*", "external:*"}


def repository_url() -> str:
    """The user's choice, else the mirror of Central that Maven would use here, else Central."""
    chosen = os.environ.get(REPOSITORY_VARIABLE) or _mirror(Path.home() / ".m2" / "settings.xml")
    return (chosen or MAVEN_CENTRAL_URL).rstrip("/")


def without_credentials(url: str) -> str:
    """A repository's address as it may be shown."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _mirror(settings: Path) -> str | None:
    try:
        root = ElementTree.parse(settings).getroot()  # noqa: S314 - the user's own Maven settings
    except (OSError, ElementTree.ParseError):
        return None
    for mirror in root.findall("{*}mirrors/{*}mirror"):
        of = {part.strip() for part in (mirror.findtext("{*}mirrorOf") or "").split(",")}
        if of & _MIRRORS_CENTRAL and "!central" not in of and mirror.findtext("{*}blocked") != "true":
            return (mirror.findtext("{*}url") or "").strip() or None
    return None
