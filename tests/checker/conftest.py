from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.checker import SparkStarter, Verdict


@pytest.fixture(scope="session")
def spark(lockstep_spark: SparkStarter) -> SparkSession:
    return lockstep_spark.start().session()


@pytest.fixture(scope="session")
def verdicts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """Every case, judged in one set of jobs; also left in the run directories, as always."""
    from lockstep.checker import judge
    from tests.checker.cases import CASES

    root = tmp_path_factory.mktemp("cases")
    for case in CASES.values():
        case.build(root / case.name)
    judged = judge([root / name for name in CASES], spark)
    return dict(zip(CASES, judged, strict=True))
