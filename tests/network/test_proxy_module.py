from __future__ import annotations

import os
import subprocess

import pytest

from lockstep.network.server_binary import BUILD_OPTIONS, BUILD_SETTINGS, MODULE, find_go


def test_the_go_module_passes_its_own_tests() -> None:
    go = find_go()
    if go is None:
        pytest.skip("there is no Go here: the proxy server was built earlier, or elsewhere")
    command = [str(go), "test", *BUILD_OPTIONS, "-count=1", "."]
    answer = subprocess.run(
        command, cwd=MODULE, env={**os.environ, **BUILD_SETTINGS}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
