"""Which image nodes run on, and the sentence when there can be none."""

from __future__ import annotations

import io
import os
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from lockstep.cluster.distribution import distribution
from lockstep.cluster.docker import build_image, engine_available, prepare_image
from lockstep.cluster.docker.base import BASE_VARIABLE, make_base, suits
from lockstep.cluster.docker.engine import connect
from lockstep.cluster.docker.resources import container_user
from lockstep.errors import EnvironmentError_
from lockstep.host.java import find_java
from lockstep.progress import Progress
from lockstep.spec.cluster import DEFAULT_KAFKA

AVAILABLE, REASON = engine_available()
QUIET = Progress(quiet=True)

needs_engine = [
    pytest.mark.docker,
    pytest.mark.xdist_group("docker"),
    pytest.mark.skipif(not AVAILABLE and os.environ.get("CI") != "true", reason=REASON),
]


@pytest.mark.parametrize(
    ("tag", "java_version", "fits"),
    [
        ("eclipse-temurin:17-jre", "jdk-17.0.15+6", True),
        ("openjdk:21", "21.0.2", True),
        ("lockstep/base:bookworm-jre17", "17", True),
        ("openjdk:11", "11.0.16", False),
        ("openjdk:8", "8u342", False),
        ("eclipse-temurin:8", "jdk8u402-b06", False),
        ("debian:12", "", False),
        ("apache/kafka:3.9.1", "jdk-17.0.15+6", False),
        ("lockstep/kafka:4.3.1", "17", False),
    ],
)
def test_a_base_has_a_recent_java_and_no_kafka(tag: str, java_version: str, fits: bool) -> None:
    assert suits(tag, {"JAVA_VERSION": java_version} if java_version else {}) is fits


def test_files_of_a_container_are_ours_on_a_rootless_engine_too() -> None:
    assert container_user({"SecurityOptions": ["name=seccomp,profile=default"]}) == f"{os.getuid()}:{os.getgid()}"
    assert container_user({"SecurityOptions": ["name=rootless", "name=cgroupns"]}) == "0:0"


def test_without_an_engine_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(EnvironmentError_, match=r"No such file or directory.*make docker-engine"):
        connect()
    available, reason = engine_available()
    assert not available
    assert "/nonexistent/docker.sock" in reason


@pytest.mark.parametrize("lacking", ["debootstrap is not installed", "debootstrap needs root"])
def test_without_a_base_the_fix_is_named(lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = None if "installed" in lacking else "/usr/sbin/debootstrap"
    monkeypatch.setattr("shutil.which", lambda _: found)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    unused: Any = None
    with pytest.raises(EnvironmentError_, match=rf"{lacking}.*lockstep image build --base IMAGE"):
        make_base(unused, QUIET)


class TestWithEngine:
    pytestmark = needs_engine

    @pytest.fixture
    def empty_image(self) -> Iterator[str]:
        """An image with nothing in it, so surely without a Java."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("nothing"))
        repository = f"lockstep-test-{uuid.uuid4().hex[:8]}"
        with closing(connect().client) as client:
            client.api.import_image(archive.getvalue(), repository=repository, tag="empty")
            yield f"{repository}:empty"
            client.images.remove(f"{repository}:empty")

    @pytest.mark.parametrize("by", ["option", "variable"])
    def test_the_chosen_base_is_used_and_refused_without_java(
        self, by: str, empty_image: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(BASE_VARIABLE, empty_image if by == "variable" else "overruled/by:option")
        with pytest.raises(EnvironmentError_, match=rf"could not be built on {empty_image}.*choose a base with a Java"):
            build_image(DEFAULT_KAFKA, QUIET, base=empty_image if by == "option" else None)

    def test_an_image_that_is_here_is_neither_pulled_nor_built_again(self) -> None:
        kafka = distribution(DEFAULT_KAFKA, find_java(), QUIET)
        name = prepare_image(DEFAULT_KAFKA, kafka, QUIET)
        with closing(connect().client) as client:
            first = client.images.get(name).id
            assert prepare_image(DEFAULT_KAFKA, kafka, QUIET) == name
            assert client.images.get(name).id == first

    def test_the_official_image_goes_before_ours(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kafka = distribution(DEFAULT_KAFKA, find_java(), QUIET)
        here = prepare_image(DEFAULT_KAFKA, kafka, QUIET)
        official = f"lockstep-test-{uuid.uuid4().hex[:8]}"
        monkeypatch.setattr("lockstep.cluster.docker.image.OFFICIAL", official)
        with closing(connect().client) as client:
            client.images.get(here).tag(official, DEFAULT_KAFKA)
            try:
                assert prepare_image(DEFAULT_KAFKA, kafka, QUIET) == f"{official}:{DEFAULT_KAFKA}"
            finally:
                client.images.remove(f"{official}:{DEFAULT_KAFKA}")
