"""Records in files: torn lines, damage, other formats, two writers, a full disk."""

import json
import math
import os

import pytest

from skldl.exceptions import RecordsError
from skldl.experiments import store as store_module
from skldl.experiments.store import FORMAT, FileStore, MemoryStore, checksum, encode, read_records

HEADER = {"kind": "header", "format": FORMAT, "skldl": "0"}
LINE = {"kind": "evaluation", "value": 0.1 + 0.2, "text": "ä\n<|>", "none": None}


def write(folder, *records):
    store = FileStore(folder, resume=True)
    for record in records:
        store.append(record)
    store.close()
    return folder / "records.jsonl"


def test_what_is_appended_is_read_back_exactly(tmp_path):
    path = write(tmp_path / "new" / "folder", HEADER, LINE)
    assert read_records(path) == ([HEADER, LINE], b"")
    assert path.read_bytes().count(b"\n") == 2


def test_infinity_and_nan_are_written_as_text():
    record = json.loads(encode({"a": math.inf, "b": [-math.inf, math.nan], "c": (1, 2)}))
    assert record.pop("checksum") == checksum(record)
    assert record == {"a": "inf", "b": ["-inf", "nan"], "c": [1, 2]}
    assert float(record["a"]) == math.inf


def test_a_memory_store_holds_what_a_file_would_hold():
    store = MemoryStore()
    store.append(LINE | {"pair": (1, math.inf)})
    store.close()
    assert store.records == [LINE | {"pair": [1, "inf"]}]


@pytest.mark.parametrize("kept", [0, 1, 20, -1])
def test_a_torn_last_line_is_cut_off_and_kept_aside(tmp_path, kept):
    path = write(tmp_path, HEADER, LINE)
    whole = path.read_bytes()
    torn = encode(LINE)[:-1] if kept == -1 else encode(LINE)[:kept]
    path.write_bytes(whole + torn)
    assert read_records(path) == ([HEADER, LINE], torn)
    store = FileStore(tmp_path, resume=True)
    store.append(LINE)
    store.close()
    assert path.read_bytes() == whole + encode(LINE)
    assert store.records == [HEADER, LINE, LINE]
    if torn:
        assert f"Its {len(torn)} bytes" in store.notices[0]
        assert (tmp_path / "records.torn").read_bytes() == torn + b"\n"
    else:
        assert store.notices == []


def test_a_header_that_was_torn_leaves_an_empty_file_to_begin_with(tmp_path):
    (tmp_path / "records.jsonl").write_bytes(encode(HEADER)[:9])
    store = FileStore(tmp_path, resume=True)
    store.close()
    assert store.records == []
    assert (tmp_path / "records.jsonl").read_bytes() == b""


@pytest.mark.parametrize("damage", [b"{]\n", b"[1]\n", b'{"a": 1}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"])
def test_damage_in_the_middle_is_not_corrected_silently(tmp_path, damage):
    path = write(tmp_path, HEADER)
    path.write_bytes(path.read_bytes() + damage + encode(LINE))
    with pytest.raises(RecordsError, match=r"Line 2 of .* is not a record"):
        FileStore(tmp_path, resume=True)
    FileStoreIsFree = write(tmp_path / "other", HEADER)  # the failed store let go of its lock and descriptor
    assert FileStoreIsFree.exists()


def test_other_files_and_formats_are_explained(tmp_path):
    path = tmp_path / "records.jsonl"
    with pytest.raises(RecordsError, match="There are no records in"):
        read_records(path)
    path.write_bytes(encode(LINE))
    with pytest.raises(RecordsError, match="not a record file of skldl bench"):
        read_records(path)
    path.write_bytes(encode(HEADER | {"format": 99, "skldl": "7.1"}))
    with pytest.raises(RecordsError, match=r"record format 99, written by scikit-ldl 7\.1"):
        read_records(path)


def test_records_are_not_overwritten(tmp_path):
    write(tmp_path, HEADER)
    with pytest.raises(RecordsError, match="Continue it with resume=True, or name another folder"):
        FileStore(tmp_path, resume=False)


def test_a_second_writer_is_rejected(tmp_path):
    first = FileStore(tmp_path, resume=True)
    with pytest.raises(RecordsError, match="Another process is writing"):
        FileStore(tmp_path, resume=True)
    first.close()
    first.close()
    FileStore(tmp_path, resume=True).close()


def test_without_locks_the_file_is_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "fcntl", None)
    assert read_records(write(tmp_path, HEADER, LINE))[0] == [HEADER, LINE]


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    path = write(tmp_path, HEADER)
    before = path.read_bytes()
    store = FileStore(tmp_path, resume=True)
    write_all = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write_all(descriptor, data[:10]))
    with pytest.raises(RecordsError, match=r"only 10 of .* bytes could be written.*The records so far are safe"):
        store.append(LINE)
    monkeypatch.undo()
    assert path.read_bytes() == before
    store.append(LINE)
    store.close()
    assert path.read_bytes() == before + encode(LINE)
