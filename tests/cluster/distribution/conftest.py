from __future__ import annotations

import pytest

from lockstep.cluster.distribution import Distribution, distribution
from lockstep.host.java import Java, find_java
from lockstep.progress import Progress
from lockstep.spec.cluster import DEFAULT_KAFKA


@pytest.fixture(scope="session")
def java() -> Java:
    return find_java()


@pytest.fixture(scope="session")
def kafka(java: Java) -> Distribution:
    return distribution(DEFAULT_KAFKA, java, Progress(quiet=True))
