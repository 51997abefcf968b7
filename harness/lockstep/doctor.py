"""What this machine can run, and the exact fix for what it cannot.

Every item is examined by the code that would use it, so the doctor cannot be of another opinion than a run. An
examination returns what it found or raises the error a run would raise, which by house rule reads "what is wrong: what
to do".
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lockstep.cluster.distribution import (
    Distribution,
    described,
    distribution,
    distribution_directory,
    ensure_jars,
    read_lock,
    usable,
    verify_jars,
)
from lockstep.errors import EnvironmentError_, LockstepError
from lockstep.host.java import find_java
from lockstep.network.loopback import require_loopback_aliases
from lockstep.network.server_binary import FIX as TOXIPROXY_FIX
from lockstep.network.server_binary import find_go, find_server, toxiproxy_server
from lockstep.progress import MEGABYTE, Progress
from lockstep.rundir import require_space
from lockstep.spec.cluster import DEFAULT_KAFKA

RUNS = Path("runs")
FIX_COMMAND = "lockstep doctor --fix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be run here."""

    kafka: str
    runs: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding."""

    name: str
    required: bool
    """Whether nothing can be run without it; else only a part cannot."""
    ok: bool
    detail: str
    fix: str
    """What to do; empty when there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to look at; `repair` is what can be done about it without root."""

    name: str
    required: bool = True
    examine: Callable[[Subject], str]
    repair: Callable[[Subject, Progress], object] | None = None


def diagnose(runs: Path = RUNS, *, kafka: str = DEFAULT_KAFKA, items: Sequence[Item] | None = None) -> list[Check]:
    """Look at everything; changes nothing and needs no network."""
    subject = _subject(runs, kafka)
    return [_check(item, subject) for item in items or ITEMS]


def fix(
    progress: Progress, runs: Path = RUNS, *, kafka: str = DEFAULT_KAFKA, items: Sequence[Item] | None = None
) -> list[Check]:
    """Repair what is not well and can be repaired here; the findings are those of afterwards."""
    subject = _subject(runs, kafka)
    return [_repaired(item, subject, progress) for item in items or ITEMS]


def healthy(checks: Sequence[Check]) -> bool:
    """Whether all that is required is there."""
    return all(check.ok for check in checks if check.required)


def _subject(runs: Path, kafka: str) -> Subject:
    read_lock(kafka)  # an unknown version is the caller's mistake, not the machine's
    return Subject(kafka=kafka, runs=runs)


def _repaired(item: Item, subject: Subject, progress: Progress) -> Check:
    check = _check(item, subject)
    if check.ok or item.repair is None:
        return check
    try:
        item.repair(subject, progress)
    except LockstepError as error:
        return _ill(item, error)
    return _check(item, subject)


def _check(item: Item, subject: Subject) -> Check:
    try:
        detail = item.examine(subject)
    except LockstepError as error:
        return _ill(item, error)
    return Check(name=item.name, required=item.required, ok=True, detail=detail, fix="")


def _ill(item: Item, error: LockstepError) -> Check:
    problem, colon, todo = str(error).rpartition(": ")
    detail, todo = (problem, todo) if colon else (todo, "")
    return Check(name=item.name, required=item.required, ok=False, detail=detail, fix=todo)


def _python(_: Subject) -> str:
    return f"Python {platform.python_version()} at {sys.executable}"


def _java(_: Subject) -> str:
    java = find_java()
    return f"Java {java.version} ({java.vendor}) at {java.home}"


def _kafka(subject: Subject) -> str:
    lock = read_lock(subject.kafka)
    directory = _jars(subject)
    missing = [jar for jar in lock.jars if not (directory / jar.file_name).exists()]
    if missing:
        raise EnvironmentError_(
            f"{len(missing)} of the {len(lock.jars)} jars of Kafka {lock.kafka} are not in {directory}: {FIX_COMMAND}"
        )
    verify_jars(lock, directory)
    return f"Kafka {lock.kafka}: {len(lock.jars)} jars, {lock.size / MEGABYTE:.0f} MB, verified, in {directory}"


def _fetch_kafka(subject: Subject, progress: Progress) -> None:
    ensure_jars(read_lock(subject.kafka), _jars(subject), progress, repair=True)


def _archives(subject: Subject) -> str:
    kafka = _described(subject)
    archives = [kafka.archive(program) for program in kafka.programs]
    for archive in archives:
        if not archive.exists():
            raise EnvironmentError_(
                f"{archive.name} is not made yet for Kafka {kafka.version} on Java {kafka.java.version}: {FIX_COMMAND}"
            )
        if not usable(archive, kafka.java, kafka.classpath):
            raise EnvironmentError_(
                f"Java {kafka.java.version} refuses {archive}, so nodes start slowly: {FIX_COMMAND}"
            )
    size = sum(archive.stat().st_size for archive in archives)
    return f"{', '.join(archive.name for archive in archives)} ({size / MEGABYTE:.0f} MB) in {kafka.trained}"


def _make_archives(subject: Subject, progress: Progress) -> None:
    kafka = _described(subject)
    if kafka.trained.exists():
        shutil.rmtree(kafka.trained)
    distribution(kafka.version, kafka.java, progress, programs=kafka.programs)


def _toxiproxy(_: Subject) -> str:
    server = find_server()
    if server is not None:
        return str(server)
    raise EnvironmentError_(f"the Toxiproxy server is not built yet: {FIX_COMMAND if find_go() else TOXIPROXY_FIX}")


def _build_toxiproxy(_: Subject, progress: Progress) -> None:
    toxiproxy_server(progress)


def _loopback(_: Subject) -> str:
    require_loopback_aliases()
    return "every address of 127.0.0.0/8 can be bound"


def _spark(_: Subject) -> str:
    try:
        return f"PySpark {importlib.metadata.version('pyspark')}"
    except importlib.metadata.PackageNotFoundError:
        raise EnvironmentError_("PySpark is not in this environment: pip install 'pyspark>=4.1,<5'") from None


def _spark_archive(_: Subject) -> str:
    from lockstep.checker.archive import archive_path

    archive = archive_path(find_java())
    if not archive.exists():
        raise EnvironmentError_(f"none is made yet, so judging starts slowly: {FIX_COMMAND}")
    return f"{archive} ({archive.stat().st_size / MEGABYTE:.0f} MB)"


def _make_spark_archive(_: Subject, progress: Progress) -> None:
    from lockstep.checker.archive import make_archive

    make_archive(find_java(), progress)


def _disk(subject: Subject) -> str:
    there = next(path for path in (subject.runs.absolute(), *subject.runs.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK):
        raise EnvironmentError_(f"{there} cannot be written, so runs cannot be kept there: choose another directory")
    return f"{require_space(there) / 1e9:.1f} GB free in {there}"


def _docker(_: Subject) -> str:
    from lockstep.cluster.docker import engine_available

    there, words = engine_available()
    if not there:
        raise EnvironmentError_(words)
    return words


def _image(subject: Subject) -> str:
    from lockstep.cluster.docker.engine import connect, engine_errors
    from lockstep.cluster.docker.image import BUILT, OFFICIAL

    wanted = {f"{name}:{subject.kafka}" for name in (OFFICIAL, BUILT)}
    with closing(connect(timeout_s=5).client) as client, engine_errors("listing images"):
        there = {tag for image in client.images.list() for tag in image.tags} & wanted
    if not there:
        raise EnvironmentError_(f"neither {' nor '.join(sorted(wanted))} is here: lockstep image build")
    return ", ".join(sorted(there))


def _jars(subject: Subject) -> Path:
    return distribution_directory(subject.kafka) / "jars"


def _described(subject: Subject) -> Distribution:
    return described(subject.kafka, find_java())


ITEMS: tuple[Item, ...] = (
    Item(name="python", examine=_python),
    Item(name="java", examine=_java),
    Item(name="kafka", examine=_kafka, repair=_fetch_kafka),
    Item(name="archive", examine=_archives, repair=_make_archives),
    Item(name="toxiproxy", examine=_toxiproxy, repair=_build_toxiproxy),
    Item(name="loopback", examine=_loopback),
    Item(name="spark", examine=_spark),
    Item(name="spark archive", required=False, examine=_spark_archive, repair=_make_spark_archive),
    Item(name="disk", examine=_disk),
    Item(name="docker", required=False, examine=_docker),
    Item(name="docker image", required=False, examine=_image),
)
