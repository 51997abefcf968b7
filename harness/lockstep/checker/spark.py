"""One Spark session, started fast and quietly, if possible while something else is going on."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lockstep.checker import archive
from lockstep.closeable import Closeable
from lockstep.errors import CheckerError, EnvironmentError_
from lockstep.host.java import find_java

_SCRATCH = "lockstep-spark-"
_HEAP_GB_MIN, _HEAP_GB_MAX = 1, 8
_QUICK = ("-XX:TieredStopAtLevel=1",)
_PRIORITY = 4  # a little behind the cluster, which is at work meanwhile and must not lose its sessions
_QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def default_master() -> str:
    return f"local[{os.cpu_count() or 2}]"


def start_spark(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    quick: bool = False,
    jvm: Sequence[str] | None = None,
) -> SparkSession:
    """A session with the settings that make small histories fast; `conf` adds to them or overrides them.

    `quick` is for histories of up to some millions of records: the JVM compiles fast instead of well. `jvm` are options
    for the JVM, by default those that make it use the class-data archive.

    Nothing is printed and nothing is left in the working directory: what Spark writes goes to a scratch directory that
    `stop_spark` removes, and what it says there is quoted if it does not start.
    """
    java = find_java()
    scratch = _scratch()
    (scratch / "log4j2.properties").write_text(_QUIET)
    settings = SparkConf(loadDefaults=False)
    options = [*(archive.options(java) if jvm is None else jvm), *(_QUICK if quick else ())]
    chosen = _settings(master or default_master(), scratch, options)
    settings.setAll(list((chosen | dict(conf or {})).items()))
    # Spark's launcher and context take these from the environment only.
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with (scratch / "spark.log").open("wb") as log:
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                settings, popen_kwargs={"stdout": log, "stderr": log}
            )
            context = SparkContext(conf=settings, gateway=gateway)
        except (PySparkException, OSError, subprocess.SubprocessError) as error:
            said = (scratch / "spark.log").read_text(errors="replace").strip().splitlines()
            shutil.rmtree(scratch, ignore_errors=True)
            last = said[-1] if said else str(error)
            raise EnvironmentError_(
                f"Spark does not start with {java.executable} ({last}): see lockstep doctor"
            ) from error
    return SparkSession(context)


def _scratch() -> Path:
    """A directory for what Spark writes. Its owner holds a lock in it, so what a killed harness left can be removed."""
    for orphan in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        lock = _locked(orphan)
        if lock is not None:
            shutil.rmtree(orphan, ignore_errors=True)
            os.close(lock)
    fresh = Path(tempfile.mkdtemp(prefix=f".{_SCRATCH}"))
    _locked(fresh)  # until this process ends
    scratch = fresh.rename(fresh.with_name(fresh.name.removeprefix(".")))  # seen by others only now that it is locked
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def _locked(scratch: Path) -> int | None:
    """The descriptor of a lock on the directory, or None if another process holds the lock."""
    try:
        lock = os.open(scratch / "owner", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    except OSError:  # another user's, or just being removed
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def stop_spark(spark: SparkSession) -> None:
    """End the session and its JVM, and remove what it wrote."""
    scratch = Path(spark.sparkContext.getConf().get("spark.local.dir") or "")
    gateway = spark.sparkContext._gateway
    spark.stop()
    if gateway is not None:
        process: subprocess.Popen[bytes] = gateway.proc
        gateway.shutdown()
        assert process.stdin is not None
        process.stdin.close()  # the JVM ends when its parent's pipe does
        process.wait()
        SparkContext._gateway = None
        SparkContext._jvm = None
    if scratch.name.startswith(_SCRATCH):
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def spark_session(*, quick: bool) -> Iterator[SparkSession]:
    """A session for one job, with nothing else going on meanwhile."""
    spark = start_spark(quick=quick)
    try:
        yield spark
    finally:
        stop_spark(spark)


class SparkStarter(Closeable):
    """Starts and warms up Spark in the background, while the caller does other work."""

    def __init__(self, master: str | None = None, conf: Mapping[str, str] | None = None) -> None:
        self._master = master
        self._conf = conf
        self._session: SparkSession | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="spark-starter", daemon=True)

    def start(self) -> SparkStarter:
        """Begin, unless it has begun already: several runs may share one Spark."""
        if self._thread.ident is None:
            self._thread.start()
        return self

    def session(self) -> SparkSession:
        """The session, as soon as it is there; raises what kept it from starting."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        if self._session is None:
            raise CheckerError("there is no Spark session: it was never started, or has been stopped")
        return self._session

    def close(self) -> None:
        """End the session, whether or not it was used.

        A session that is still starting is not waited for (the user pressed Ctrl-C): its JVM ends with this process.
        """
        if self._session is not None and not self._thread.is_alive():
            stop_spark(self._session)
            self._session = None

    def _run(self) -> None:
        from lockstep.checker.judgement import warm_up

        if sys.platform == "linux":  # where a thread has a priority of its own, and its children inherit it
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _PRIORITY)
        try:
            self._session = start_spark(self._master, self._conf, quick=True)
            warm_up(self._session)
        except Exception as error:  # raised again where the session is asked for
            self._error = error


def _settings(master: str, scratch: Path, jvm: Sequence[str]) -> dict[str, str]:
    heap_gb = min(max(psutil.virtual_memory().total // (4 << 30), _HEAP_GB_MIN), _HEAP_GB_MAX)
    return {
        "spark.master": master,
        "spark.app.name": "lockstep",
        "spark.driver.memory": f"{heap_gb}g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": (
            f"-XX:+UseParallelGC -Dlog4j2.configurationFile={(scratch / 'log4j2.properties').as_uri()} "
            f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData {' '.join(jvm)}"
        ),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.files.maxPartitionBytes": str(2 << 20),
        "spark.sql.files.openCostInBytes": str(256 << 10),
        "spark.sql.adaptive.enabled": "false",  # planning again after every stage costs more than it saves here
        "spark.sql.shuffle.partitions": "2",  # `judge` sets it by size
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
