"""How long Spark takes to start, to warm up and to judge, plain and made quick, side by side.

python benchmarks/spark_start.py RUN
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from lockstep.checker import archive, start_spark, stop_spark
from lockstep.checker.judgement import assess, warm_up
from lockstep.host.java import find_java
from lockstep.progress import Progress

SETTINGS: dict[str, tuple[bool, bool]] = {
    "plain": (False, False),
    "with a class-data archive": (True, False),
    "and C1 only": (True, True),
}


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main(run: Path) -> None:
    java = find_java()
    archive.make_archive(java, Progress())
    for name, (archived, quick) in SETTINGS.items():
        jvm = archive.options(java) if archived else ()
        start = time.perf_counter()
        spark = start_spark(quick=quick, jvm=jvm)
        session_s = time.perf_counter() - start
        warm_up_s = timed(lambda spark=spark: warm_up(spark))  # type: ignore[misc]
        judge_s = timed(lambda spark=spark: assess([run], spark))  # type: ignore[misc]
        stop_spark(spark)
        print(f"{name:28} session {session_s:5.1f} s   warm-up {warm_up_s:5.1f} s   judge {judge_s:5.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
