"""The report in a real browser: silent, offline, and never wider than the screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

import lockstep_reports as reports
from tests.reports import sample_runs
from tests.reports.browser import watched


@pytest.mark.parametrize("builder", [sample_runs.pass_run, sample_runs.violation_run, sample_runs.hostile_run])
def test_it_runs_clean_asks_for_nothing_and_fits_a_phone(
    browser: Browser, builder: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = reports.render(builder(tmp_path / "run"))
    page = browser.new_page(viewport={"width": 400, "height": 800})
    said, asked = watched(page)
    page.goto(path.as_uri())

    for width in (400, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("svg.timeline").hover()
    assert "acked/s" in page.locator(".reading").inner_text()
    page.locator("#timeline .scroll").first.focus()
    before = page.locator(".reading").inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".reading").inner_text() != before
    assert page.locator(".command button").count() == page.locator(".command").count()
    assert said == []
    assert asked == [path.as_uri()]
    page.close()


def test_it_can_be_read_without_scripts(browser: Browser, tmp_path: Path) -> None:
    path = reports.render(sample_runs.violation_run(tmp_path / "run"))
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(path.as_uri())
    assert page.locator("h1").inner_text() == "Violation"
    assert page.locator("svg.timeline").is_visible()
    assert not page.locator("button").count()
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(
    browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_context(color_scheme=scheme).new_page()
    page.goto(reports.render(sample_runs.violation_run(tmp_path / "run")).as_uri())
    for selector in (".verdict h1", ".why", ".kicker", "h2", ".status.held", ".status.permitted", ".numbers dt"):
        assert page.locator(selector).first.evaluate(CONTRAST) >= 4.5, selector
    page.context.close()


CONTRAST = """element => {
  const parse = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  let behind = element;
  while (behind && parse(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
  const a = light(parse(getComputedStyle(element).color));
  const b = light(parse(getComputedStyle(behind).backgroundColor));
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
"""The contrast ratio of the Web Content Accessibility Guidelines."""
