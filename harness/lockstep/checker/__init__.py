"""The checker: history in, verdict out. Spark is imported only when something here is used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.checker.judgement import SERIES, VERDICT, judge
    from lockstep.checker.spark import SparkStarter, spark_session, start_spark, stop_spark
    from lockstep.checker.verdict import Anomaly, GuaranteeResult, OperationRef, Series, Verdict

SAMPLE = Path(__file__).with_name("sample")
"""The run directory of a small legal history, made by `synthetic` with seed 1; copy it to judge it."""

_HOME = {
    "SERIES": "judgement",
    "VERDICT": "judgement",
    "judge": "judgement",
    "SparkStarter": "spark",
    "spark_session": "spark",
    "start_spark": "spark",
    "stop_spark": "spark",
    "Anomaly": "verdict",
    "GuaranteeResult": "verdict",
    "OperationRef": "verdict",
    "Series": "verdict",
    "Verdict": "verdict",
}

__all__ = [
    "SAMPLE",
    "SERIES",
    "VERDICT",
    "Anomaly",
    "GuaranteeResult",
    "OperationRef",
    "Series",
    "SparkStarter",
    "Verdict",
    "judge",
    "spark_session",
    "start_spark",
    "stop_spark",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
