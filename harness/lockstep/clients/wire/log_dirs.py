"""The log directories of one broker (DescribeLogDirs)."""

from __future__ import annotations

from kio.schema.describe_log_dirs.v1.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v1.response import DescribeLogDirsResponse
from kio.schema.errors import ErrorCode

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.network.topology import Address


def ask_log_dirs(address: Address, access: Access = OPEN) -> dict[str, bool]:
    """Its log directories as it knows them, and whether each is online. Raises `OSError` when it does not answer."""
    with Connection(address, access) as connection:
        response = connection.ask(DescribeLogDirsRequest(topics=None))
    assert isinstance(response, DescribeLogDirsResponse)
    return {result.log_dir: result.error_code is ErrorCode.none for result in response.results}
