"""The version in which a request is sent to a node: ours, or an older one with the same fields.

We have one type for each kind of request, of a version that 3.7 or 3.8 brought. Where older versions differ in nothing
but their number, or in fields of the answer that have tags, older nodes are sent these.
"""

from __future__ import annotations

from collections.abc import Mapping

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.end_txn.v4.request import EndTxnRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.produce.v11.request import ProduceRequest
from kio.schema.txn_offset_commit.v4.request import TxnOffsetCommitRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from lockstep.errors import ClusterError

ALIKE: Mapping[type[RequestPayload], int] = {
    ProduceRequest: 9,
    InitProducerIdRequest: 4,
    AddOffsetsToTxnRequest: 3,
    EndTxnRequest: 3,
    TxnOffsetCommitRequest: 3,
}
"""The oldest version that is like ours."""
WHICH_VERSIONS = ApiVersionsRequest(client_software_name="lockstep", client_software_version="1")


def newest_versions(response: ResponsePayload) -> dict[int, int]:
    """The newest version that a node knows, of each kind of request, by its answer to `WHICH_VERSIONS`."""
    assert isinstance(response, ApiVersionsResponse)
    return {int(key.api_key): int(key.max_version) for key in response.api_keys}


def chosen(request: RequestPayload, newest: Mapping[int, int]) -> int:
    """The newest version that both we and a node with these know."""
    version = min(int(request.__version__), newest.get(int(request.__api_key__), -1))
    if version < ALIKE[type(request)]:
        raise ClusterError(f"the node knows {type(request).__name__} up to version {version}, which is too old for us")
    return version
