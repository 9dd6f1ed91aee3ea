"""Writes files of tables: small, with encodings that every reader of Iceberg knows.
bench/results/fleet.md has the alternatives that were tried."""

from collections.abc import Iterable

import pyarrow as pa
from pyiceberg.io import pyarrow as files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Transaction

# Table properties for every program that writes its files: up to this level zstd takes
# hardly more time.
PROPERTIES = {"write.parquet.compression-level": "9"}
# PyArrow ends a page after 20,000 rows, and zstd cannot use the page before. With this a page
# ends only at a megabyte.
_ROWS_OF_PAGE = 1 << 20

_known = files._get_parquet_writer_kwargs


def _settings(properties: dict[str, str]) -> dict[str, object]:
    """PyIceberg's settings for PyArrow, plus one that it has no property for."""
    return _known(properties) | {"max_rows_per_page": _ROWS_OF_PAGE}


files._get_parquet_writer_kwargs = _settings


def write(changed: Transaction, rows: pa.Table) -> Iterable[DataFile]:
    """Writes rows; they count once the files are appended and that is committed."""
    if not rows.num_rows:
        return []
    return files._dataframe_to_data_files(changed.table_metadata, rows, changed._table.io)


def append(changed: Transaction, written: Iterable[DataFile], properties: dict[str, str]) -> None:
    """Appends files."""
    with changed.update_snapshot(snapshot_properties=properties).fast_append() as appended:
        for file in written:
            appended.append_data_file(file)
