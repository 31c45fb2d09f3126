"""Model files: what comes back is what went in, nothing in them runs, and every damage is reported."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skldl
from skldl import persistence
from skldl.exceptions import DataError, ModelFileError
from skldl.testing import make_distributions

X, D = make_distributions()


@pytest.fixture
def model_file(tmp_path):
    return skldl.save(skldl.MeanDistribution().fit(X, D), tmp_path / "model.skldl", description={"rows": len(X)})


def rewrite(path, **changes):
    """Write the archive again with other members, with a checksum that fits unless one is given."""
    with zipfile.ZipFile(path) as archive:
        about, content = json.loads(archive.read("skldl.json")), archive.read("model.skops")
    content = changes.pop("content", content)
    about = {**about, "sha256": hashlib.sha256(content).hexdigest(), **changes}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("skldl.json", json.dumps(about))
        archive.writestr("model.skops", content)


def test_round_trip_of_a_pipeline(tmp_path):
    model = make_pipeline(StandardScaler(), skldl.MeanDistribution()).fit(X, D)
    path = skldl.save(model, tmp_path / "m.skldl")
    np.testing.assert_array_equal(skldl.load(path).predict(X), model.predict(X))
    assert [file.name for file in tmp_path.iterdir()] == ["m.skldl"]


ESTIMATORS = {
    "AAKNN": lambda: skldl.AAKNN(n_neighbors=3),
    "AAKNN ball tree": lambda: skldl.AAKNN(algorithm="ball_tree"),
    "AAKNN tree": lambda: skldl.AAKNN(algorithm="kd_tree"),
    "AAKNN of a sparse matrix": lambda: skldl.AAKNN(n_neighbors=3),
    "AARegressor": lambda: skldl.AARegressor(RandomForestRegressor(3, random_state=0)),
    "AARegressor boosting": lambda: skldl.AARegressor(HistGradientBoostingRegressor(max_iter=3)),
    "CPNN": lambda: skldl.CPNN(tol=1e-2),  # the default needs more steps than it takes on these rows, and warns
    "LDLClassifier": lambda: skldl.LDLClassifier(skldl.MeanDistribution()),
    "PTClassifier": lambda: skldl.PTClassifier(LogisticRegression()),
    "CalibratedLDL": lambda: skldl.CalibratedLDL(skldl.SABFGS(), random_state=0),
    "ConformalLDL": lambda: skldl.ConformalLDL(skldl.SABFGS(), method="cv+", n_folds=3, random_state=0),
    "DirichletSpread": lambda: skldl.DirichletSpread(skldl.SABFGS(), concentration="features", random_state=0),
    "StackingLDL": lambda: skldl.StackingLDL([("linear", skldl.SABFGS()), ("near", skldl.AAKNN())], random_state=0),
}


@pytest.mark.parametrize("name", [*ESTIMATORS, *(name for name in skldl.ESTIMATORS if name not in ESTIMATORS)])
def test_every_estimator_comes_back_the_same(tmp_path, name):
    """Behind the encoder of tables, with no type that has to be trusted by hand."""
    pandas = pytest.importorskip("pandas")
    from skldl.tabular import TableEncoder

    table = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(word=["u", "v"] * (len(X) // 2))
    make = ESTIMATORS.get(name) or getattr(skldl, name)
    y = D.argmax(axis=1) if name == "LDLClassifier" else D
    sparse_features = "sparse" in name
    table = table[["word"]].assign(key=[f"k{i % 20}" for i in range(len(X))]) if sparse_features else table
    model = make_pipeline(TableEncoder(text=["word"], dense=not sparse_features), make()).fit(table, y)
    again = skldl.load(skldl.save(model, tmp_path / "m.skldl"))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


LOGICAL = np.eye(D.shape[1], dtype=int)[D.argmax(axis=1)]
VOTES = np.random.default_rng(0).choice(["a", "b", "c"], (30, 4))
ENHANCERS = ("FCM", "GLLE", "KM", "LESC", "ML", "PropagationEnhancer")
OTHERS = {
    **{
        name: lambda name=name: (getattr(skldl.enhancement, name)().fit(X, LOGICAL), lambda model: model.distributions_)
        for name in ENHANCERS
    },
    "GLLE of new rows": lambda: (skldl.enhancement.GLLE().fit(X, LOGICAL), lambda model: model.transform(X[:5])),
    "EnhancedLDL": lambda: (
        skldl.enhancement.EnhancedLDL(skldl.enhancement.GLLE(), skldl.AAKNN(3)).fit(X, D),
        lambda model: model.predict(X),
    ),
    "LDLClassifier": lambda: (
        skldl.LDLClassifier(skldl.SABFGS(), skldl.enhancement.GLLE()).fit(X, D.argmax(axis=1)),
        lambda model: model.predict_proba(X),
    ),
    "DawidSkene": lambda: (skldl.annotators.DawidSkene().fit(VOTES), lambda model: model.confusion_),
    "DawidSkene ordinal": lambda: (
        skldl.annotators.DawidSkene(model="ordinal").fit(VOTES),
        lambda model: model.confusion_,
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_type_of_this_package_comes_back_the_same(tmp_path, name):
    model, use = OTHERS[name]()
    again = skldl.load(skldl.save(model, tmp_path / "m.skldl"))
    np.testing.assert_array_equal(use(again), use(model))


def test_no_public_estimator_of_this_package_is_missing_from_the_table_of_types():
    from skldl._algorithms import ALGORITHMS, MODEL_PARTS

    known = {f"{row.module}.{row.class_name}" for row in ALGORITHMS} | set(MODEL_PARTS)
    modules = [import_module(f"skldl.{found.name}") for found in iter_modules(skldl.__path__) if found.ispkg]
    public = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    estimators = [kind for kind in public if isinstance(kind, type) and issubclass(kind, BaseEstimator)]
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in estimators}
    assert "skldl.enhancement._glle.GLLE" in names
    assert names <= known, names - known


def test_inspect_works_without_loading(model_file):
    about = persistence.inspect(model_file)
    assert about["description"] == {"rows": len(X)}
    assert about["versions"]["scikit-ldl"] == skldl.__version__


def strictly(text):
    """Read JSON as every other program does: Infinity and NaN are no numbers."""

    def reject(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=reject)


def test_numbers_that_are_not_finite_are_null_and_come_back_as_none(tmp_path):
    given = {"skill": -np.inf, "of": [np.nan, 1.5, {"high": np.float64("inf")}], "rows": (3, "inf")}
    path = skldl.save(skldl.MeanDistribution().fit(X, D), tmp_path / "model.skldl", description=given)
    with zipfile.ZipFile(path) as archive:
        written = strictly(archive.read("skldl.json"))
    expected = {"skill": None, "of": [None, 1.5, {"high": None}], "rows": [3, "inf"]}
    assert written["description"] == persistence.inspect(path)["description"] == expected


@pytest.mark.parametrize("key", [np.nan, -np.inf, np.float64("inf")])
def test_a_key_that_is_not_finite_is_rejected(tmp_path, key):
    model = skldl.MeanDistribution().fit([[0.0], [1.0]], [[0.2, 0.8], [0.6, 0.4]])
    with pytest.raises(DataError, match=r"The description has the key .*, which JSON does not have"):
        skldl.save(model, tmp_path / "m.skldl", description={"of": [{key: 1}]})
    assert list(tmp_path.iterdir()) == []


def test_infinity_and_nan_in_a_description_are_read_as_none(model_file):
    rewrite(model_file, description={"skill": float("-inf"), "low": float("nan"), "rows": 3})
    with zipfile.ZipFile(model_file) as archive:
        assert b"-Infinity" in archive.read("skldl.json")
    assert persistence.inspect(model_file)["description"] == {"skill": None, "low": None, "rows": 3}


def test_unfitted_models_are_rejected(tmp_path):
    with pytest.raises(NotFittedError):
        skldl.save(skldl.MeanDistribution(), tmp_path / "m.skldl")
    assert not list(tmp_path.iterdir())


class Foreign(BaseEstimator):
    """An estimator that this package does not know."""

    def fit(self, X, y):
        self.fitted_ = True
        return self


def test_unknown_types_are_rejected_by_name(tmp_path):
    path = skldl.save(Foreign().fit(X, D), tmp_path / "m.skldl")
    name = f"{Foreign.__module__}.Foreign"
    with pytest.raises(ModelFileError, match=r"holds the type .*Foreign.*trusted="):
        skldl.load(path)
    sys.modules[Foreign.__module__] = sys.modules[__name__]
    assert isinstance(skldl.load(path, trusted=[name]), Foreign)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short(model_file, share):
    content = model_file.read_bytes()
    model_file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match=r"not a model file|cut short|damaged"):
        skldl.load(model_file)


def test_every_flipped_byte_is_noticed_or_harmless(model_file):
    content = bytearray(model_file.read_bytes())
    expected = skldl.load(model_file).predict(X)
    for place in range(0, len(content), max(1, len(content) // 60)):
        damaged = content.copy()
        damaged[place] ^= 0xFF
        model_file.write_bytes(damaged)
        try:
            P = skldl.load(model_file).predict(X)
        except ModelFileError:
            continue
        np.testing.assert_array_equal(P, expected)


def test_tampering_and_other_versions(model_file):
    rewrite(model_file, sha256="0" * 64)
    with pytest.raises(ModelFileError, match="was changed after it was written"):
        skldl.load(model_file)
    rewrite(model_file, format=persistence.FORMAT + 1)
    with pytest.raises(ModelFileError, match="newer than this"):
        skldl.load(model_file)
    rewrite(model_file, format=1, versions={"scikit-ldl": "99.1.0"})
    with pytest.raises(ModelFileError, match=r"scikit-ldl 99\.1\.0 .*Upgrade"):
        skldl.load(model_file)
    rewrite(model_file, format="one")
    with pytest.raises(ModelFileError, match="no format number"):
        skldl.load(model_file)


def test_a_content_that_cannot_be_rebuilt(model_file):
    with zipfile.ZipFile(model_file) as archive:
        about = json.loads(archive.read("skldl.json"))
    import io as bytes_io

    inner = bytes_io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("schema.json", json.dumps({"protocol": 2, "__loader__": "NoSuchNode", "__class__": "x"}))
    rewrite(model_file, content=inner.getvalue(), versions=about["versions"])
    with pytest.raises(ModelFileError):
        skldl.load(model_file)


def test_another_version_of_scikit_learn_is_a_warning(model_file):
    rewrite(model_file, versions={"scikit-ldl": skldl.__version__, "scikit-learn": "0.1.0"})
    with pytest.warns(UserWarning, match=r"written with scikit-learn 0\.1\.0"):
        skldl.load(model_file)


def test_other_archives_and_files(tmp_path):
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(ModelFileError, match=r"it holds a\.txt"):
        skldl.load(other)
    with pytest.raises(FileNotFoundError):
        skldl.load(tmp_path / "nothing.skldl")


def test_a_failed_write_leaves_the_old_file(model_file, monkeypatch):
    before = model_file.read_bytes()

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        skldl.save(skldl.MeanDistribution().fit(X, D[::-1]), model_file)
    assert model_file.read_bytes() == before
    assert [file.name for file in model_file.parent.iterdir()] == [model_file.name]


def test_a_killed_process_leaves_the_old_file_whole(model_file):
    script = textwrap.dedent(
        f"""
        import skldl
        from skldl.testing import make_distributions
        model = skldl.MeanDistribution().fit(*make_distributions(2000, 4, 3))
        print("ready", flush=True)
        while True:
            skldl.save(model, {str(model_file)!r})
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert skldl.load(model_file).predict(X).shape == D.shape


def test_permissions_follow_the_umask(model_file):
    mask = os.umask(0)
    os.umask(mask)
    assert model_file.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_directory_that_points_before_the_beginning_is_damage(model_file):
    """zipfile seeks there and gets an error of the system."""
    content = bytearray(model_file.read_bytes())
    end = content.rindex(b"PK\x05\x06")
    content[end + 16 : end + 20] = (len(content) * 4).to_bytes(4, "little")  # where the directory begins
    model_file.write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged"):
        skldl.load(model_file)
