"""Parts of a table, joined without being decoded, are the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.simulation import thrift
from lockstep.simulation.parquet import PartWriter, join

FIELDS: list[pa.Field[Any]] = [
    pa.field("a", pa.int64(), nullable=False),
    pa.field("b", pa.string()),
    pa.field("c", pa.list_(pa.int32())),
]
SCHEMA = pa.schema(FIELDS)


def rows(first: int, number: int) -> pa.Table:
    columns: dict[str, Any] = {
        "a": np.arange(first, first + number),
        "b": [None, "x"] * (number // 2),
        "c": [[1, 2]] * number,
    }
    return pa.table(columns, schema=SCHEMA)


def part(path: Path, *groups: pa.Table) -> Path:
    writer = PartWriter(path, SCHEMA)
    for group in groups:
        writer.write(group)
    writer.close()
    return path


@pytest.mark.parametrize("groups", [0, 1, 20])  # twenty: a list of more than fourteen has another form
def test_parts_are_joined(tmp_path: Path, groups: int) -> None:
    made = [[rows(100 * number + 10 * index, 10) for index in range(groups)] for number in range(3)]
    parts = [part(tmp_path / str(number), *tables) for number, tables in enumerate(made)]
    join(tmp_path / "all.parquet", parts)

    every = [table for tables in made for table in tables]
    assert pq.read_table(tmp_path / "all.parquet").equals(pa.concat_tables([SCHEMA.empty_table(), *every]))
    metadata = pq.read_metadata(tmp_path / "all.parquet")
    assert (metadata.num_rows, metadata.num_row_groups) == (30 * groups, 3 * groups)
    if groups:
        last = metadata.row_group(3 * groups - 1).column(0)
        assert last.statistics is not None
        assert last.statistics.max == 200 + 10 * groups - 1
        assert last.file_offset == 0 or last.file_offset > metadata.row_group(0).column(0).data_page_offset


def test_a_footer_is_written_as_it_was_read(tmp_path: Path) -> None:
    content = part(tmp_path / "one", rows(0, 10), rows(10, 6)).read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]

    assert thrift.encode(thrift.decode(footer)) == footer


def test_a_type_that_no_footer_has_is_refused() -> None:
    with pytest.raises(ValueError, match="Thrift's type 11"):
        thrift.decode(bytes([1 << 4 | thrift.MAP, 0]))
