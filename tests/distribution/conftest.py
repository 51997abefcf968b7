from __future__ import annotations

import pytest

from harness.cluster.distribution import Distribution, distribution
from harness.cluster.spec import DEFAULT_KAFKA
from harness.java import Java, find_java
from harness.progress import Progress


@pytest.fixture(scope="session")
def java() -> Java:
    return find_java()


@pytest.fixture(scope="session")
def kafka(java: Java) -> Distribution:
    return distribution(DEFAULT_KAFKA, java, Progress(quiet=True))
