"""Every how-to, word for word: on a copy of this repository its files, patches and commands do what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, SOURCES, Block, Copy, blocks_of, matches

PAGES = sorted(path for path in (ROOT / "docs" / "how-to").glob("*.md") if path.name != "README.md")
SERVICES = ("cluster", "spark", "docker", "long")


def needs(page: Path) -> frozenset[str]:
    return frozenset[str]().union(*(block.needs for block in blocks_of(page)))


def live() -> list[object]:
    """The pages with blocks that need something, each marked with all that it needs."""
    return [
        pytest.param(page, id=page.stem, marks=[getattr(pytest.mark, need) for need in sorted(needs(page))])
        for page in PAGES
        if needs(page)
    ]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "lockstep")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_needs_no_cluster_and_no_spark(page: Path, copy: Copy) -> None:
    for block in blocks_of(page):
        if not block.needs:
            copy.carry_out(block)


@pytest.mark.parametrize("page", live())
def test_all_of_it(page: Path, copy: Copy) -> None:
    for block in blocks_of(page):
        copy.carry_out(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_it_adds_is_clean(page: Path, copy: Copy) -> None:
    python = [path for path in changes(page, copy) if path.endswith(".py")]
    copy.run("ruff", "check", "--no-cache", *python)
    copy.run("ruff", "format", "--no-cache", "--check", *python)
    copy.run("lint-imports", "--no-cache")


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_it_adds_has_types(page: Path, copy: Copy) -> None:
    changes(page, copy)
    copy.run("mypy", *SOURCES, "tests", "conftest.py")


def changes(page: Path, copy: Copy) -> list[str]:
    """Change the files as the page says, without its commands; their paths."""
    blocks = [block for block in blocks_of(page) if block.language != "console"]
    for block in blocks:
        copy.carry_out(block)
    return sorted({path for block in blocks for path in block.changed()})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_changes_and_commands_and_says_how_they_fail(page: Path) -> None:
    blocks = blocks_of(page)
    assert needs(page) <= set(SERVICES)
    assert any(block.changed() for block in blocks)
    assert sum(len(list(block.commands())) for block in blocks) >= 2
    assert "## See that it can fail" in page.read_text()
    assert page.name in (page.parent / "README.md").read_text()


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("2 passed in ...s\n", "..\n2 passed in 0.1s\n", False),
        ("...2 passed in ...s\n", "..\n2 passed in 0.1s\n", True),
        ("a (b)\n...\nz\n", "a (b)\nc\nd\nz", True),
        ("a\n", "ab\n", False),
    ],
)
def test_three_dots_are_any_text(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def test_a_command_that_prints_something_else_fails_and_so_does_one_that_fails(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "lockstep")
    copy.carry_out(console("$ echo yes\nyes\n$ echo no || true\nno\n"))
    with pytest.raises(AssertionError, match="should print"):
        copy.carry_out(console("$ echo yes\nno\n"))
    with pytest.raises(AssertionError):
        copy.carry_out(console("$ false\n"))


def console(text: str) -> Block:
    return Block(language="console", needs=frozenset(), path=None, text=text)
