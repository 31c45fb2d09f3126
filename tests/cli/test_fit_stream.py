"""`skldl fit --stream`: the model of memory, from files of every kind, again after a stop, or one clear error."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.cli import _fit_stream
from skldl.cli._app import run
from skldl.cli._resume import ResumeFolder
from skldl.data._table_files import TableFiles
from skldl.exceptions import DatasetError
from skldl.persistence import inspect
from skldl.tabular._stream_training import STREAMING, can_stream, fit_stream
from skldl.tabular._streamed_rows import EncodedRows, HeldOut
from skldl.tabular._streamed_table import StreamedTable

SKLDL = [sys.executable, "-c", "from skldl.cli import main; main()"]
FIT = "--labels 'r_*' --stream --model sa-bfgs --set alpha=0.001"


def call(line):
    return run(shlex.split(line))


def ratings(n_rows=600, seed=0):
    """A table with numbers, gaps and categories that tell something about the labels."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.normal(size=n_rows), "age": rng.integers(18, 90, n_rows).astype(float)})
    table["town"] = rng.choice(["Ulm", "Bonn", "Oslo"], n_rows)
    scores = np.column_stack([table["x"], 0.03 * table["age"], 1.0 * (table["town"] == "Ulm")])
    D = np.exp(scores + 0.3 * rng.normal(size=scores.shape))
    table.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
    return table.join(pd.DataFrame(D / D.sum(axis=1, keepdims=True), columns=["r_a", "r_b", "r_c"]))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with one table in several forms."""
    monkeypatch.chdir(tmp_path)
    table = ratings()
    table.to_csv("all.csv", index=False)
    (tmp_path / "parts").mkdir()
    for place, part in enumerate(np.split(np.arange(600), [250, 251, 400])):
        table.iloc[part].to_parquet(f"parts/part-{place}.parquet", index=False)
    return tmp_path


def model_of(file):
    return skldl.load(file)


def as_array(X):
    return X.toarray() if hasattr(X, "toarray") else X


@pytest.mark.parametrize(
    "kind", ["files", pytest.param("one file", marks=pytest.mark.slow), pytest.param("weights", marks=pytest.mark.slow)]
)
def test_the_model_is_that_of_the_same_rows_in_memory(here, kind):
    """All rows of the stream, put together, and the estimator fitted to them in memory."""
    files = ["parts/part-0.parquet", "parts/part-1.parquet", "parts/part-2.parquet", "parts/part-3.parquet"]
    if kind == "weights":
        files = ["weighted.csv"]
        ratings().assign(w=np.arange(600) % 4).to_csv("weighted.csv", index=False)
    table = StreamedTable(
        TableFiles(files if kind != "one file" else ["all.csv"]),
        ["r_*"],
        weight="w" if kind == "weights" else None,
    )
    fitted = fit_stream(table, model="sa-bfgs-cv", settings={"alphas": [0.1, 0.001], "cv": 2})
    table.chunk_rows = 60
    encoder = fitted.model[0]
    parts = list(EncodedRows(table, encoder, HeldOut(0.2, 0), None).read())
    X, D = np.vstack([as_array(part.X) for part in parts]), np.vstack([part.D for part in parts])
    weight = None if kind != "weights" else np.concatenate([part.weight for part in parts])
    assert fitted.description["rows"] == len(X) == (450 if kind == "weights" else 600) - fitted.description["held_out"]
    in_memory = skldl.SABFGSCV(alphas=[0.1, 0.001], cv=2).fit(X, D, weight)
    new = ratings(50, seed=1)
    np.testing.assert_allclose(
        fitted.model.predict(new), in_memory.predict(as_array(encoder.transform(new))), rtol=0, atol=1e-9
    )
    assert fitted.choice.beats_mean


def test_the_files_of_a_folder_are_one_table(here, capsys):
    sources = {"one": "all.csv", "folder": "parts"}
    found = {}
    for name, source in sources.items():
        assert call(f"fit {source} {FIT} --out {name}.skldl") == 0, capsys.readouterr().err
        found[name] = model_of(f"{name}.skldl")[-1].coef_
    assert "Judged on" in capsys.readouterr().out
    np.testing.assert_allclose(found["folder"], found["one"], rtol=1e-9)
    assert not list(here.glob("*.resume"))
    assert inspect("folder.skldl")["description"]["source"] == "parts/part-0.parquet and 3 more files"
    assert call("fit parts --labels 'r_*' --model mean --out memory.skldl") == 0  # several files in memory
    assert inspect("memory.skldl")["description"]["rows"] == 600


def test_the_model_file_is_an_ordinary_one(here, capsys):
    assert call(f"fit parts {FIT} --out m.skldl --keep-rows 7") == 0
    assert call("predict m.skldl all.csv --out p.csv --monitor p.json") == 0
    assert "Note" not in capsys.readouterr().err
    degrees = pd.read_csv("p.csv")[["r_a", "r_b", "r_c"]]
    np.testing.assert_allclose(degrees.sum(axis=1), 1, atol=1e-5)
    assert call("inspect m.skldl") == 0
    assert "parts/part-0.parquet and 3 more files" in capsys.readouterr().out
    assert call("explain m.skldl all.csv") == 0
    assert call("export m.skldl --card card.md") == 0
    assert "One split: the model was judged on 110 rows" in (here / "card.md").read_text()
    about = inspect("m.skldl")["description"]
    kept = about["kept_rows"]
    held = HeldOut(0.2, 0)
    table = StreamedTable(TableFiles(["all.csv"]), ["r_*"])
    (chunk,) = table.chunks()
    training = chunk.X[~held.of(chunk)]
    assert len(kept["rows"]) == 7
    for position, row in zip(kept["positions"], kept["rows"], strict=True):
        assert row[0] == pytest.approx(training["x"].iloc[position])
    from skldl.serve._model import ServedModel

    assert ServedModel("m.skldl", "m").labels == ["r_a", "r_b", "r_c"]


def test_text_is_hashed(here, capsys):
    """And the features are sparse, which the chunks must say from the first on."""
    rng = np.random.default_rng(0)
    table = ratings(200)
    table["says"] = np.where(table["r_a"] > 0.4, "all is very well", "not well at all " + rng.choice(["x", "y"], 200))
    table.to_csv("says.csv", index=False)
    assert call(f"fit says.csv {FIT} --text says --text-ngrams words --out m.skldl") == 0, capsys.readouterr().err
    assert model_of("m.skldl")[-1].n_features_in_ > 2**14
    assert inspect("m.skldl")["description"]["features"]["says"] == "text"
    assert call("predict m.skldl says.csv --out p.csv") == 0


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        pytest.param("counts", ["r_a", "r_b", "r_c"], marks=pytest.mark.slow),
        ("votes", ["0", "1", "2"]),
        pytest.param("label", ["may", "no", "yes"], marks=pytest.mark.slow),
    ],
)
def test_kinds_of_labels(here, capsys, kind, labels):
    table = ratings(300)
    counts = np.random.default_rng(0).multinomial(9, table[["r_a", "r_b", "r_c"]].to_numpy())
    features = table[["x", "town"]]
    features.assign(r_a=counts[:, 0], r_b=counts[:, 1], r_c=counts[:, 2]).to_csv("counts.csv", index=False)
    votes = pd.DataFrame({f"r_{k}": counts.argmax(axis=1) if k else counts.argmin(axis=1) for k in range(3)})
    features.join(votes).to_csv("votes.csv", index=False)
    features.assign(r_says=np.array(["no", "yes", "may"])[counts.argmax(axis=1)]).to_csv("label.csv", index=False)
    assert call(f"fit {kind}.csv {FIT} --kind {kind} --out m.skldl") == 0, capsys.readouterr().err
    assert inspect("m.skldl")["description"]["labels"] == labels
    assert ("Noise floor" in capsys.readouterr().out) == (kind != "label")


def test_notes_about_columns_and_rows(here, capsys):
    table = ratings(200)
    table.loc[:9, ["r_a", "r_b", "r_c"]] = np.nan
    told = table.assign(leak=2 * table["r_a"], day="2024-01-05", w=np.where(table.index < 20, 0, 1), r_d=0.0)
    told.to_csv("odd.csv", index=False)
    assert call(f"fit odd.csv {FIT.replace('r_*', 'r_a,r_b,r_c')} --weight w --drop r_d --out m.skldl") == 0
    notes = capsys.readouterr().err
    assert "10 of 200 rows have no label and are left out" in notes
    assert "10 of 190 rows have weight zero and are left out" in notes
    assert "Column 'leak' alone determines the label 'r_a' nearly completely" in notes
    assert "Column 'day' holds dates" in notes


def test_groups_are_held_out_together(here, capsys):
    ratings().assign(person=np.repeat(np.arange(60), 10)).to_csv("people.csv", index=False)
    assert call(f"fit people.csv {FIT} --groups person --out m.skldl") == 0
    assert "whole groups held out" in capsys.readouterr().out
    assert inspect("m.skldl")["description"]["held_out"] % 10 == 0
    assert call("fit people.csv --labels 'r_*' --stream --groups person --out n.skldl") == 2
    assert "--model sa-bfgs with --set alpha=0.001" in capsys.readouterr().err


def test_all_models_that_stream_are_named():
    titles = [algorithm.title for algorithm in skldl.names.ALGORITHMS if algorithm.title]
    found = {title for title in titles if can_stream(skldl.names.find_candidate(title).make())}
    assert found == set(STREAMING)


def stopped_after(monkeypatch, n_passes):
    """Let the fit be interrupted when so many passes were written."""
    put = _fit_stream.ResumeFolder.__init__

    def begin(self, *arguments):
        put(self, *arguments)
        keep = self.journal.put

        def counted(number, key, sums):
            keep(number, key, sums)
            if number == n_passes:
                raise KeyboardInterrupt

        self.journal.put = counted

    monkeypatch.setattr(ResumeFolder, "__init__", begin)


@pytest.mark.parametrize("cache", [pytest.param("0", marks=pytest.mark.slow), "1GiB"])
def test_the_same_command_goes_on_after_a_stop(here, monkeypatch, capsys, cache):
    line = f"fit parts {FIT} --cache {cache}"
    assert call(f"{line} --out whole.skldl") == 0
    with monkeypatch.context() as patched:
        stopped_after(patched, 3)
        assert call(f"{line} --out m.skldl") == 130
    told = capsys.readouterr().err
    assert "3 passes are kept in m.skldl.resume" in told
    assert not (here / "m.skldl").exists()
    assert len(list((here / "m.skldl.resume").glob("pass-*.npz"))) == 3
    assert call(f"{line} --out m.skldl") == 0
    assert "Going on from m.skldl.resume, which holds 3 passes" in capsys.readouterr().err
    assert not (here / "m.skldl.resume").exists()
    first, second = model_of("whole.skldl"), model_of("m.skldl")
    assert (first[-1].coef_ == second[-1].coef_).all()
    new = ratings(50, seed=1)
    assert (first.predict(new) == second.predict(new)).all()
    reported = [inspect(file)["description"] for file in ("whole.skldl", "m.skldl")]
    assert reported[0] == reported[1]


def test_a_stop_before_anything_is_kept_leaves_nothing(here, monkeypatch):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("skldl.tabular._stream_training.ChunkedFit.end_pass", interrupted)
    before = sorted(here.rglob("*"))
    assert call(f"fit all.csv {FIT} --out m.skldl") == 130
    assert sorted(here.rglob("*")) == before


def test_the_state_of_another_fit_is_not_used(here, monkeypatch, capsys):
    with monkeypatch.context() as patched:
        stopped_after(patched, 2)
        assert call(f"fit all.csv {FIT} --out m.skldl") == 130
    assert call(f"fit all.csv {FIT} --seed 1 --out m.skldl") == 0
    assert "held the state of another fit" in capsys.readouterr().err
    assert not (here / "m.skldl.resume").exists()
    first = ResumeFolder(here / "m.skldl", ["all.csv"], {})
    assert call(f"fit all.csv {FIT} --out m.skldl") == 2
    assert "Another skldl fit is writing to m.skldl.resume" in capsys.readouterr().err
    first.remove()
    (here / "n.skldl.resume").write_text("a file")
    assert call(f"fit all.csv {FIT} --out n.skldl") == 2
    assert "n.skldl.resume is a file" in capsys.readouterr().err


def spoil(here, what):
    """Make a bad input of the parts; the arguments of the command and the message."""
    part = here / "parts" / "part-2.parquet"
    if what == "corrupt in the middle":
        content = bytearray(part.read_bytes())
        content[200:3000] = b"\xff" * 2800
        part.write_bytes(content)
        return "parts", "part-2.parquet cannot be read"
    if what == "cut off":
        part.write_bytes(part.read_bytes()[:-100])
        return "parts", "part-2.parquet starts like a Parquet file but cannot be read"
    if what == "empty file":
        (here / "parts" / "part-9.csv").write_bytes(b"")
        return "parts", "part-9.csv is empty"
    frame = pd.read_parquet(part)
    if what == "another column":
        frame.rename(columns={"age": "years"}).to_parquet(part)
        return "parts", "part-2.parquet lacks the column 'age'"
    if what == "a further column":
        frame.assign(more=1).to_parquet(part)
        return "parts", "part-2.parquet has a further column 'more'"
    if what == "a row that does not sum to one":
        frame.loc[frame.index[16], "r_a"] += 0.5
        frame.to_parquet(part, index=False)
        return "parts", "part-2.parquet: The labels sum to 1.5, not 1, in row 17"
    if what == "an empty label":
        frame.loc[frame.index[4], "r_b"] = np.nan
        frame.to_parquet(part, index=False)
        return "parts", "part-2.parquet: Row 5 of column 'r_b', a label, is empty"
    if what == "a bad cell":
        frame.astype({"x": object}).assign(x=["oops", *frame["x"].iloc[1:].astype(str)]).to_csv(
            here / "parts" / "b.csv", index=False
        )
        part.unlink()
        return "parts", "Column 'x' is mostly numbers, but holds 'oops' (row 1 of parts/b.csv)"
    raise AssertionError(what)


@pytest.mark.parametrize(
    "what",
    [
        "corrupt in the middle",
        "cut off",
        "empty file",
        "another column",
        "a further column",
        "a row that does not sum to one",
        "an empty label",
        "a bad cell",
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(here, capsys, what):
    sources, message = spoil(here, what)
    before = sorted(here.rglob("*"))
    assert call(f"fit {sources} {FIT} --out m.skldl") == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert sorted(here.rglob("*")) == before


def test_a_file_without_rows_is_passed_over(here, capsys):
    (here / "parts" / "part-9.csv").write_text("x,age,town,r_a,r_b,r_c\n")
    assert call(f"fit parts {FIT} --out m.skldl") == 0
    assert "part-9.csv has a header but no rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("all.csv --stream", "--labels is missing"),
        ("- --labels r --stream", "Standard input can be read only once"),
        ("all.npz --labels r --stream", "holds arrays"),
        ("all.csv --labels 'r_*' --stream --model aa-knn", "in chunks are SA-BFGS-CV, SA-BFGS, SA-IIS, PT-Bayes, Mean"),
        ("all.csv --labels 'r_*' --stream --preset best", "--preset has no part in a fit"),
        ("all.csv --labels 'r_*' --stream --folds 3", "--set cv=5"),
        ("all.csv --labels 'r_*' --stream --intervals", "without --stream"),
        ("all.csv --labels 'r_*' --stream --memory 10MiB", "--memory 10MiB is too little"),
        ("all.csv --labels 'r_*' --stream --memory lots", "write a number with a unit"),
        ("all.csv --labels 'r_*' --stream --set alpha=1", "parameters belong to a model"),
        ("all.csv --labels 'q_*' --stream", "the table has no such column"),
        ("none.csv --labels 'r_*' --stream", "There is no file none.csv"),
        ("'none/*.csv' --labels 'r_*' --stream", "nothing fits the pattern"),
        ("all.csv parts/none.npz --labels 'r_*'", "Name it alone"),
        ("all.csv --labels 'r_*' --stream --keep-rows 0", "--keep-rows 0 must be from 1"),
    ],
)
def test_what_cannot_be_is_refused_with_the_cure(here, capsys, line, message):
    np.savez("all.npz", X=np.zeros((3, 1)), D=np.full((3, 2), 0.5))
    assert call(f"fit {line} --out m.skldl") == 2
    assert message in capsys.readouterr().err
    assert not (here / "m.skldl").exists()
    assert not (here / "m.skldl.resume").exists()


def test_a_large_table_is_streamed_without_being_asked(here, monkeypatch, capsys):
    monkeypatch.setattr(_fit_stream, "SMALL", 1000)
    assert call("fit all.csv --labels 'r_*' --model mean --out m.skldl") == 0
    assert "chunks" not in capsys.readouterr().err
    monkeypatch.setattr(_fit_stream, "available_memory", lambda: 100_000)
    assert call("fit all.csv --labels 'r_*' --model mean --out m.skldl") == 0
    assert "it is read in chunks, as with --stream" in capsys.readouterr().err
    assert call("fit all.csv --labels 'r_*' --model mean --folds 2 --out m.skldl") == 0
    assert "It is read into memory, since --folds asks for that" in capsys.readouterr().err


@pytest.mark.slow
def test_a_large_table_and_a_model_that_needs_memory(here, monkeypatch, capsys):
    monkeypatch.setattr(_fit_stream, "SMALL", 1000)
    monkeypatch.setattr(_fit_stream, "available_memory", lambda: 100_000)
    assert call("fit all.csv --labels 'r_*' --model aa-knn --set n_neighbors=5 --out m.skldl") == 0
    assert "only SA-BFGS-CV, SA-BFGS, SA-IIS, PT-Bayes, Mean learn in chunks" in capsys.readouterr().err


@pytest.mark.slow
def test_a_disk_without_room(here):
    """A limit on the size of files stands for a full disk: the cache is given up, the state of a pass is an error."""
    script = (
        "import resource, sys; from skldl.cli._app import run; limit = int(sys.argv[1]), resource.RLIM_INFINITY; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, limit); sys.exit(run(sys.argv[2:]))"
    )
    command = [sys.executable, "-c", script]
    line = shlex.split(f"fit parts {FIT} --out m.skldl")
    done = subprocess.run([*command, "700", *line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "The state of the fit cannot be written to m.skldl.resume: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (here / "m.skldl").exists()
    assert call(f"fit parts {FIT} --out m.skldl") == 0


@pytest.mark.slow
def test_a_model_that_does_not_fit_into_the_bound(here, capsys):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(30, 1200)), columns=[f"x{k}" for k in range(1200)])
    wide.assign(r_a=0.5, r_b=0.5).to_parquet("wide.parquet")
    assert call("fit wide.parquet --labels 'r_*' --stream --memory 600MiB --out m.skldl") == 2
    assert "The table makes 1,200 features" in capsys.readouterr().err
    assert call("fit wide.parquet --labels 'r_*' --stream --memory 300MiB --out m.skldl") == 2
    assert "is too little: the libraries take 440 MiB" in capsys.readouterr().err
    with pytest.raises(DatasetError, match="cannot be written"):
        ResumeFolder(Path("none/m.skldl"), ["all.csv"], {}).save(None, {})


def test_free_memory_is_known_on_linux():
    assert sys.platform != "linux" or 2**20 < _fit_stream.available_memory() < 2**50


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come so far"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("n_passes", [0, 2, 9])
def test_a_kill_and_the_same_command_again(here, n_passes):
    """SIGKILL in the middle of a pass; the result is the same to the last digit as without it."""
    ratings(45_000).to_csv("large.csv", index=False)  # two chunks
    model = "--model sa-bfgs-cv --set alphas=[0.1,0.001]"
    line = shlex.split(f"fit large.csv --labels 'r_*' --stream --memory 620MiB --cache 0 {model}")
    assert run([*line, "--out", "whole.skldl"]) == 0
    folder = here / "m.skldl.resume"
    process = subprocess.Popen([*SKLDL, *line, "--out", "m.skldl"], stderr=subprocess.DEVNULL)
    wait_for(lambda: (folder / "state.json").exists() and len(list(folder.glob("pass-*.npz"))) >= n_passes)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -9
    assert not (here / "m.skldl").exists()
    assert run([*line, "--out", "m.skldl"]) == 0
    assert not folder.exists()
    first, second = model_of("whole.skldl"), model_of("m.skldl")
    assert (first[-1].coef_ == second[-1].coef_).all()
    assert (first[-1].intercept_ == second[-1].intercept_).all()
    assert inspect("whole.skldl")["description"] == inspect("m.skldl")["description"]


def peak_memory(arguments):
    """Greatest resident memory of a run, in MiB."""
    script = (
        "import resource, sys; from skldl.cli._app import run; status = run(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_rows(here, ending):
    for name, n_rows in (("small", 100_000), ("large", 300_000)):
        table = ratings(n_rows)
        table.to_csv(f"{name}.csv", index=False) if ending == "csv" else table.to_parquet(f"{name}.parquet")
    del table

    def peak(name, memory):
        return peak_memory(shlex.split(f"fit {name}.{ending} {FIT} --memory {memory} --out {name}.skldl"))

    small, large = peak("small", "640MiB"), peak("large", "640MiB")
    assert max(small, large) < 640
    assert large < small + 40
    assert peak("large", "1GiB") < 1024
    assert os.path.getsize("large.skldl") < 100_000
