from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.errors import UsageError
from lockstep.plan.plan import Hold
from lockstep.plan.scenario import find_scenarios, get_scenario

MINE = """
from lockstep import PlanBuilder, leader_of, scenario

@scenario(summary="{summary}")
def {name}(plan: PlanBuilder) -> None:
    topic = plan.topic("t", partitions=1, replication=1, min_isr=1)
    plan.write(topic)
"""


def test_a_users_directory_is_searched_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(name="my_own_drill", summary="mine"))
    found = get_scenario("my-own-drill", [tmp_path])
    assert found.summary == "mine"
    assert found.plan(1).topics[0].name == "t"
    assert "leader-kill" in find_scenarios([tmp_path])


def test_steady_breaks_nothing() -> None:
    assert [type(step) for step in get_scenario("steady").plan(1).steps] == [Hold]


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(UsageError, match="there is no scenario 'leader-kil'; did you mean 'leader-kill'"):
        get_scenario("leader-kil")


def test_a_far_miss_lists_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"there are: .*leader-kill"):
        get_scenario("zzz")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_that_name")
    with pytest.raises(UsageError, match=r"broken.py cannot be loaded: ModuleNotFoundError"):
        find_scenarios([tmp_path])


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "clash.py").write_text(MINE.format(name="leader_kill", summary="another"))
    with pytest.raises(UsageError, match="two scenarios are called leader-kill"):
        find_scenarios([tmp_path])


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory of scenarios"):
        find_scenarios([tmp_path / "nowhere"])


def test_a_scenarios_package_of_the_users_own_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "__init__.py").touch()
    code = "from lockstep.plan.scenario import find_scenarios; print(*find_scenarios())"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "leader-kill" in found.stdout.split()
