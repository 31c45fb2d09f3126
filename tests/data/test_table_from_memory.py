"""Tables from streams in memory, as the service has them."""

import io

import pandas as pd
import pytest

from skldl.data import TableFile
from skldl.exceptions import TableError


def test_a_stream_is_read_like_a_file(tmp_path):
    table = pd.DataFrame({"a": [1.5, 2.0], "b": ["x", "y;z"]})
    parquet = io.BytesIO()
    table.to_parquet(parquet)
    for content in (
        table.to_csv(index=False).encode(),
        table.to_csv(index=False, sep=";").encode(),
        parquet.getvalue(),
    ):
        (tmp_path / "table").write_bytes(content)
        stream = io.BytesIO(content)
        pd.testing.assert_frame_equal(TableFile(stream).read(), TableFile(tmp_path / "table").read())
        assert stream.closed


def test_messages_call_a_stream_by_its_name():
    stream = io.BytesIO(b"a,b\n1,2\n1,2,3\n")
    with pytest.raises(TableError, match="the stream cannot be read as a table: row 2 has 3 cells, the header 2"):
        TableFile(stream).read()
    stream = io.BytesIO(b"")
    stream.name = "the body"
    with pytest.raises(TableError, match="the body is empty"):
        TableFile(stream)
    assert stream.closed
