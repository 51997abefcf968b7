from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from lockstep.checker import spark


def test_what_a_killed_harness_left_is_removed_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    in_use = spark._scratch()
    orphan = tmp_path / "lockstep-spark-orphan"
    orphan.mkdir()
    (orphan / "shuffle").write_bytes(b"much")
    other = tmp_path / "spark-of-somebody-else"
    other.mkdir()

    fresh = spark._scratch()

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([in_use.name, fresh.name, other.name])
