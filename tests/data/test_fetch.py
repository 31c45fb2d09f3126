"""Downloads from a real HTTP server on this machine, which can serve whole, cut and changed files."""

import contextlib
import gzip
import hashlib
import struct
import threading
import time
import zlib
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy import io

from skldl.data import CATALOGUE, _catalogue, _download, fetch_dataset, load_dataset
from skldl.exceptions import DatasetError, UnknownDatasetError


class Server(ThreadingHTTPServer):
    """Serves one body for every path, in a way that the test chooses; counts the requests."""

    daemon_threads = True
    body = b""
    behaviour = "whole"
    requests = 0
    poured = 0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        behaviour, body = self.server.behaviour, self.server.body
        if behaviour == "missing" or not self.path.startswith("/mirror/"):
            self.send_error(404)
            return
        if behaviour == "drips headers":
            self.drip(b"HTTP/1.0 200 OK\r\nX-Slow: " + b"x" * 5000)
            return
        self.send_response(200)
        if behaviour in ("endless", "drips", "compressed"):
            if behaviour == "compressed":
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            if behaviour == "drips":
                self.drip(body)
            elif behaviour == "compressed":
                self.wfile.write(gzip.compress(bytes(50_000_000)))
            else:
                self.pour()
            return
        if behaviour == "huge":
            self.send_header("Content-Length", str(10**12))
            self.end_headers()
            return
        if behaviour == "cut":
            body = body[: len(body) // 2]  # and no length is announced: the client cannot notice
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour == "dies":
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.connection.close()
            return
        self.wfile.write(body)

    def drip(self, content):
        with contextlib.suppress(OSError):
            for start in range(len(content)):
                if self.server.stopped.wait(0.02):
                    return
                self.wfile.write(content[start : start + 1])
                self.wfile.flush()

    def pour(self):
        with contextlib.suppress(OSError):
            while not self.server.stopped.is_set():
                self.wfile.write(bytes(65_536))
                self.server.poured += 65_536

    def log_message(self, format, *arguments):
        pass


def mat_bytes(path, n_samples, n_features, n_labels, seed=0, total=1.0, compressed=False):
    rng = np.random.default_rng(seed)
    labels = rng.dirichlet(np.ones(n_labels), size=n_samples) * total
    io.savemat(
        path, {"features": rng.normal(size=(n_samples, n_features)), "labels": labels}, do_compression=compressed
    )
    return path.read_bytes()


@pytest.fixture
def server(no_data, tmp_path, monkeypatch):
    """A mirror of SJAFFE, whose checksum in the catalogue is made to fit the served file."""
    server = Server(("127.0.0.1", 0), Handler)
    server.stopped = threading.Event()
    server.body = mat_bytes(tmp_path / "original.mat", 213, 243, 6)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("SKLDL_MIRROR", f"http://127.0.0.1:{server.server_address[1]}/mirror/")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    entry = replace(CATALOGUE["SJAFFE"], sha256=hashlib.sha256(server.body).hexdigest())
    monkeypatch.setitem(_catalogue._BY_SPELLING, "sjaffe", entry)
    yield server
    server.stopped.set()
    server.shutdown()
    thread.join()
    server.server_close()
    for running in threading.enumerate():  # a download that was given up notices that the server is gone
        if running.name == "skldl-download":
            running.join(10)
            assert not running.is_alive()


def test_good_file_is_fetched_once_into_the_cache(server, no_data):
    dataset = fetch_dataset("sjaffe")
    assert [path.name for path in no_data.iterdir()] == ["SJAFFE.mat"]
    assert (no_data / "SJAFFE.mat").read_bytes() == server.body
    assert dataset.source == str(no_data / "SJAFFE.mat")
    assert dataset.label_names[0] == "happiness"
    assert server.requests == 1
    fetch_dataset("SJAFFE")
    assert server.requests == 1
    np.testing.assert_array_equal(load_dataset("SJAFFE").X, dataset.X)


def test_folder_can_be_named(server, no_data, tmp_path):
    home = tmp_path / "deep" / "home"
    assert fetch_dataset("SJAFFE", data_home=home).source == str(home / "SJAFFE.mat")
    assert not no_data.exists()
    assert load_dataset("SJAFFE", data_home=home).n_samples == 213


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("behaviour", "message"),
    [("missing", "could not be downloaded .*404"), ("dies", "could not be downloaded"), ("cut", "was deleted")],
)
def test_failed_download_leaves_nothing(server, no_data, behaviour, message, verify):
    server.behaviour = behaviour
    with pytest.raises(DatasetError, match=message) as caught:
        fetch_dataset("SJAFFE", verify=verify)
    assert "/mirror/SJAFFE.mat" in str(caught.value)
    assert list(no_data.iterdir()) == []


def test_changed_file_is_thrown_away(server, no_data, tmp_path):
    published = hashlib.sha256(server.body).hexdigest()
    server.body = mat_bytes(tmp_path / "changed.mat", 213, 243, 6, seed=1)
    with pytest.raises(DatasetError, match=f"not the published file of SJAFFE: its sha256 is .*, not {published}"):
        fetch_dataset("SJAFFE")
    assert list(no_data.iterdir()) == []
    assert fetch_dataset("SJAFFE", verify=False).n_samples == 213


def test_file_that_is_no_dataset_is_thrown_away(server, no_data, tmp_path):
    for body, message in [
        (b"<!DOCTYPE html>" + b" " * 500, "was deleted: SJAFFE.mat cannot be read .* web page"),
        (mat_bytes(tmp_path / "counts.mat", 213, 243, 6, total=9), "was deleted: .* sums to 9"),
        (mat_bytes(tmp_path / "other.mat", 10, 243, 6), "was deleted: .* holds 10 rows"),
    ]:
        server.body = body
        with pytest.raises(DatasetError, match=message):
            fetch_dataset("SJAFFE", verify=False)
        assert list(no_data.iterdir()) == []


def test_changed_file_that_is_already_there_is_kept(server, no_data, tmp_path):
    no_data.mkdir()
    mine = mat_bytes(no_data / "SJAFFE.mat", 213, 243, 6, seed=2)
    with pytest.raises(DatasetError, match="Nothing was downloaded, because the file exists already"):
        fetch_dataset("SJAFFE")
    assert (no_data / "SJAFFE.mat").read_bytes() == mine
    assert fetch_dataset("SJAFFE", verify=False).n_samples == 213
    assert server.requests == 0
    with pytest.raises(DatasetError, match="not the published file"):
        load_dataset("SJAFFE")


def test_unknown_checksum_needs_an_explicit_word(server, no_data, tmp_path):
    for name in ("Natural_Scene", "Human_Gene"):
        with pytest.raises(DatasetError, match=rf"No checksum .* fetch_dataset\('{name}', verify=False\)"):
            fetch_dataset(name)
    assert server.requests == 0
    server.body = mat_bytes(tmp_path / "scene.mat", 2000, 294, 9)
    assert fetch_dataset("Natural Scene", verify=False).label_names[0] == "plant"


def test_shorter_human_gene_is_taken_with_a_warning(server, no_data, tmp_path):
    server.body = mat_bytes(tmp_path / "gene.mat", 17892, 36, 68)
    with pytest.warns(UserWarning, match="holds 17892 rows") as caught:
        fetch_dataset("Human_Gene", verify=False)
    assert len(caught) == 1


def test_offline_says_what_to_do(server, no_data, monkeypatch):
    monkeypatch.setenv("SKLDL_MIRROR", "http://127.0.0.1:9")  # nothing listens there
    with pytest.raises(DatasetError, match="Without a network") as caught:
        fetch_dataset("SJAFFE")
    message = str(caught.value)
    assert "http://127.0.0.1:9/SJAFFE.mat" in message
    assert f"put it into {no_data}" in message
    assert "SKLDL_DATA" in message
    assert len(message) < 800


def test_address_that_is_none(server, monkeypatch):
    monkeypatch.setenv("SKLDL_MIRROR", "ftp://files")
    with pytest.raises(DatasetError, match="SKLDL_MIRROR='ftp://files' is not an address"):
        fetch_dataset("SJAFFE")


def test_interrupt_leaves_nothing(server, no_data, monkeypatch):
    def interrupted(url, path, max_bytes):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(_download, "download", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_dataset("SJAFFE")
    assert list(no_data.iterdir()) == []


def test_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatasetError, match=r"cannot be written to .*data_home="):
        fetch_dataset("SJAFFE", data_home=tmp_path / "file" / "sub")


def test_unknown_name(no_data):
    with pytest.raises(UnknownDatasetError, match="Did you mean Movie"):
        fetch_dataset("Movies")


def test_default_address_is_the_published_one(no_data, monkeypatch):
    asked = []

    def offline(url, path, max_bytes):
        asked.append(url)
        raise OSError("x" * 500)

    monkeypatch.setattr(_download, "download", offline)
    with pytest.raises(DatasetError, match="x…"):
        fetch_dataset("Yeast-alpha")
    assert asked == [CATALOGUE["Yeast_alpha"].url]


@pytest.mark.parametrize("behaviour", ["drips", "drips headers"])
def test_a_server_that_drips_is_given_up(server, no_data, monkeypatch, behaviour):
    monkeypatch.setattr(_download, "MAX_SECONDS", 0.5)
    server.behaviour = behaviour
    start = time.monotonic()
    with pytest.raises(DatasetError, match=r"could not be downloaded \(it took more than 0.5 seconds\)"):
        fetch_dataset("SJAFFE")
    assert time.monotonic() - start < 20  # of the hours that it would take; the machine may be busy
    assert list(no_data.iterdir()) == []


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("endless", r"more bytes than the limit of 1,000,000"),
        ("huge", r"it has 1,000,000,000,000 bytes, more than the limit of 1,000,000"),
        ("compressed", r"content encoding 'gzip', which was not asked for"),
    ],
)
def test_more_than_the_limit_is_not_taken(server, no_data, monkeypatch, behaviour, message):
    monkeypatch.setattr(_download, "MAX_BYTES", 1_000_000)
    server.behaviour = behaviour
    with pytest.raises(DatasetError, match=message):
        fetch_dataset("SJAFFE", verify=False)
    assert list(no_data.iterdir()) == []
    assert server.poured < 50_000_000


def test_an_interrupt_while_waiting_ends_the_transfer(server, no_data, monkeypatch):
    server.behaviour = "drips"

    def interrupted(thread, timeout):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch_dataset("SJAFFE")
    assert list(no_data.iterdir()) == []


def bomb(n_bytes):
    """A MATLAB file of one compressed element that unpacks to so many zeros."""
    packed = zlib.compress(bytes(n_bytes))
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    return header + struct.pack("<II", 15, len(packed)) + packed


def test_a_compressed_bomb_of_a_file_is_thrown_away(server, no_data, monkeypatch, tmp_path):
    monkeypatch.setattr(_download, "MAX_UNPACKED", 10_000_000)
    server.body = bomb(30_000_000)
    assert len(server.body) < 100_000
    with pytest.raises(DatasetError, match=r"was deleted: SJAFFE.mat unpacks to more than 10,000,000 bytes"):
        fetch_dataset("SJAFFE", verify=False)
    assert list(no_data.iterdir()) == []
    server.body = mat_bytes(tmp_path / "good.mat", 213, 243, 6, compressed=True)
    assert fetch_dataset("SJAFFE", verify=False).n_samples == 213


def test_damaged_compressed_parts_pass_to_whoever_reads_the_file(tmp_path):
    for number, content in enumerate(
        [b"short", bomb(1000)[:-4], bomb(1000)[:136] + b"x" * 60, bomb(10).replace(b"IM", b"MI")]
    ):
        path = tmp_path / f"{number}.mat"
        path.write_bytes(content)
        _download.check_unpacked_size(path)
    plain = tmp_path / "plain.mat"
    mat_bytes(plain, 20, 3, 2)
    _download.check_unpacked_size(plain, max_unpacked=1)  # nothing in it is compressed
