"""One page that opens from an e-mail, with nothing to load and nothing that can run but its own script.

Two walls keep hostile contents out: everything is escaped where it is written (Jinja's autoescape, SVG as a tree, JSON
without `<`), and the page's policy allows only the one style sheet and the one script whose hashes it names.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from lockstep_model.verdicts import RunVerdict
from lockstep_reports import words
from lockstep_reports.content import Info

VERDICTS = {RunVerdict.PASS: "Pass", RunVerdict.VIOLATION: "Violation", RunVerdict.UNDECIDED: "Undecided"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One key number."""

    label: str
    value: str
    alert: bool = False


def document(template: str, **content: Any) -> str:
    """A page made from a template that extends `base.html.j2`, ready to be written."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lockstep_reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(count=words.count, seconds=words.seconds, moment=words.moment, span=words.span)
    style, script = _asset(environment, "report.css"), _asset(environment, "report.js")
    return environment.get_template(template).render(
        style=style, script=script, policy=_policy(style, script), **content
    )


def _asset(environment: jinja2.Environment, name: str) -> Markup:
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0].strip())  # noqa: S704  # our own file


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def environment_facts(name: str, info: Info) -> list[tuple[str, str]]:
    """Where and on what something ran, as far as it is known."""
    nodes = words.listing([str(node.get("name", node.get("id", "?"))) for node in info.nodes])
    known = [
        ("run", name),
        ("started", info.clock.utc if info.clock else None),
        ("lockstep", info.lockstep),
        ("nodes", nodes or None),
        *(
            (words.label(key), words.shown(key, value))
            for key, value in (info.spec | info.external).items()
            if value not in ({}, [], None)
        ),
        *((words.label(key), words.shown(key, value)) for key, value in info.environment.items()),
    ]
    return [(name, value) for name, value in known if value]
