"""`report.html` of counterexamples (`lockstep retrace`): a row for each, with what Kafka did and a page of its own."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep_reports import words
from lockstep_reports.junit_cases import Case
from lockstep_reports.several import Kind
from lockstep_reports.stepped_run import SteppedRun
from lockstep_reports.walk import TRACES as PARTS
from lockstep_reports.walk import known
from lockstep_reports.walk_content import RetraceVerdict, Turn


def cases(verdict: RetraceVerdict) -> Iterator[Case]:
    for trace in verdict.traces:
        yield Case(trace.name, trace.turn.outcome, trace.seconds, trace.evidence or "", trace.notice or known(trace))
    for skipped in verdict.skipped:
        yield Case(skipped.name, None, 0.0, skipped.why)


def page(run: SteppedRun[RetraceVerdict]) -> str:
    """The document, ready to be written."""
    verdict = run.verdict
    notices = [trace.notice for trace in verdict.traces if trace.notice]
    return run.page(
        "retrace.html.j2",
        headline=headline(verdict),
        numbers=[
            ("counterexamples", words.count(len(verdict.traces))),
            *((f"bad turn {turn}", words.count(len(named))) for turn in Turn if (named := _named(verdict, turn))),
            ("duration", words.seconds(verdict.seconds)),
        ],
        alerts=[("to look into", words.count(len(notices)))] if notices else [],
        traces=[(trace, trace.name.replace(":", "."), known(trace)) for trace in verdict.traces],
        notices=notices,
    )


def headline(verdict: RetraceVerdict) -> str:
    """One sentence why the verdict is what it is."""
    where = f"Kafka {verdict.kafka} ({verdict.mode})"
    of = words.plural(len(verdict.traces), "counterexample")
    wrong = f" The model is a wrong one ({verdict.wrong_model})." if verdict.wrong_model else ""
    if taken := _named(verdict, Turn.TAKEN):
        return f"{where} took the bad turn of {words.listing(taken)}.{wrong}"
    if undecided := _named(verdict, Turn.UNDECIDED):
        return f"{where} could not be brought to where {words.listing(undecided)} would go wrong.{wrong}"
    if permitted := _named(verdict, Turn.PERMITTED):
        return f"Of {of} {where} took the bad turn of {words.listing(permitted)} only, which is known.{wrong}"
    return f"{where} took the bad turn of none of {of}.{wrong}"


def _named(verdict: RetraceVerdict, turn: Turn) -> list[str]:
    return [trace.name for trace in verdict.traces if trace.turn is turn]


COUNTEREXAMPLES = Kind(
    parts=PARTS,
    command="retrace",
    what="a run of counterexamples",
    verdict=RetraceVerdict,
    called=lambda _: "counterexamples",
    page=page,
    cases=cases,
)
