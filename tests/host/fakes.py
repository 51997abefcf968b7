"""Executables that only pretend, for what a machine may have on its PATH."""

from __future__ import annotations

from pathlib import Path


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def java(home: Path, version: str, *, modules: str = "jdk.incubator.vector") -> Path:
    """A Java home whose java describes itself as `version`."""
    settings = {
        "java.home": home,
        "java.version": version,
        "java.vendor": "Fake",
        "java.vm.version": f"{version}+1",
    }
    shown = "".join(f"    {name} = {value}\n" for name, value in settings.items())
    modules = "".join(f"{name}@{version}\n" for name in ["java.base", *modules.split()])
    executable(home / "bin" / "java", f"cat >&2 <<'E'\n{shown}E\ncat <<'E'\n{modules}E")
    return home
