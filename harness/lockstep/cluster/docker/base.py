"""A base image with a Java: one that is here, else a small Debian made with debootstrap."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from docker import DockerClient as Sdk
from docker.models.images import Image

from lockstep.cluster.docker.engine import engine_errors
from lockstep.errors import EnvironmentError_
from lockstep.host.cache import cache_dir
from lockstep.host.java import OLDEST_MAJOR
from lockstep.progress import Progress

BASE_VARIABLE = "LOCKSTEP_BASE_IMAGE"
DEBIAN = "lockstep/base:bookworm-jre17"
SUITE = "bookworm"
PACKAGES = "openjdk-17-jre-headless,iproute2"  # iproute2, so that a person can look around in a namespace
TIMEOUT_S = 900

# Files that are never read in a container; a third of the size.
LEFT_OUT = (
    "./var/cache/apt/*",
    "./var/lib/apt/lists/*",
    "./usr/share/doc/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
)


def find_base(client: Sdk) -> str | None:
    """The smallest local image that says it has a recent Java, as the usual JRE images do in JAVA_VERSION.

    The smallest, because what others have built on such an image is larger than the image itself.
    """
    with engine_errors("listing images"):
        fitting = [image for image in client.images.list() if image.tags and suits(image.tags[0], _environment(image))]
    smallest = min(fitting, key=lambda image: (image.attrs["Size"], image.tags[0]), default=None)
    return smallest.tags[0] if smallest else None


def suits(tag: str, environment: dict[str, str]) -> bool:
    """Whether our jars can go on an image: its Java is new enough, and it has no Kafka of its own to mix with."""
    repository = tag.rpartition(":")[0]
    major = re.match(r"(?:jdk-?)?(\d+)", environment.get("JAVA_VERSION", ""))
    return not repository.endswith("/kafka") and major is not None and int(major[1]) >= OLDEST_MAJOR


def make_base(client: Sdk, progress: Progress) -> str:
    """Install a minimal Debian with a Java and import it as an image."""
    _require_debootstrap()
    work = cache_dir() / "work"
    work.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="base-", dir=work))
    with progress.action(f"installing Debian {SUITE} with a Java as {DEBIAN}"):
        _debootstrap(root)
        _import(client, root)
    shutil.rmtree(root)
    return DEBIAN


def _require_debootstrap() -> None:
    lacking = None
    if shutil.which("debootstrap") is None:
        lacking = "debootstrap is not installed (apt-get install debootstrap)"
    elif os.geteuid() != 0:
        lacking = "debootstrap needs root"
    if lacking:
        raise EnvironmentError_(
            f"no local image has a Java {OLDEST_MAJOR}, and none can be made because {lacking}: name one with "
            f"lockstep image build --base IMAGE or {BASE_VARIABLE}"
        )


def _debootstrap(root: Path) -> None:
    log = root.with_suffix(".log")
    # In a mount namespace of its own: whatever it mounts below `root` is gone when it ends, however it ends.
    argv = ["unshare", "--mount", "debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root)]
    with log.open("wb") as output:
        try:
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=TIMEOUT_S, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(root, ignore_errors=True)
            last = log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise EnvironmentError_(
                f"debootstrap could not install a base image ({last or error}): see {log}, or name an image with "
                f"lockstep image build --base IMAGE or {BASE_VARIABLE}"
            ) from error
    log.unlink()


def _import(client: Sdk, root: Path) -> None:
    repository, _, tag = DEBIAN.rpartition(":")
    left_out = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    with subprocess.Popen(["tar", "-C", str(root), *left_out, "-c", "."], stdout=subprocess.PIPE) as tar:
        assert tar.stdout is not None
        with engine_errors(f"importing {DEBIAN}"):
            changes = [f"ENV JAVA_VERSION={OLDEST_MAJOR}"]
            client.api.import_image(tar.stdout, repository=repository, tag=tag, changes=changes, stream_src=True)
    if tar.returncode != 0:
        client.images.remove(DEBIAN, force=True)
        raise EnvironmentError_(f"tar failed with code {tar.returncode} while {DEBIAN} was made: is the disk full?")


def _environment(image: Image) -> dict[str, str]:
    settings = image.attrs["Config"]["Env"] or []
    return dict(setting.partition("=")[::2] for setting in settings)
