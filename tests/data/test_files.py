import os

import numpy as np
import pytest
from scipy import io, sparse

from skldl.data import CATALOGUE, Dataset, load_dataset
from skldl.exceptions import DatasetError, DatasetNotFoundError, UnknownDatasetError
from skldl.simplex import normalize


def write_entry(folder, name, *, n_samples=None, **replaced):
    """A file of the catalogue's size with random content."""
    entry = CATALOGUE[name]
    rng = np.random.default_rng(0)
    n = n_samples or entry.n_samples
    content = {
        "features": rng.normal(size=(n, entry.n_features)),
        "labels": rng.dirichlet(np.ones(entry.n_labels), size=n),
    }
    folder.mkdir(exist_ok=True)
    io.savemat(folder / entry.file_name, content | replaced)
    return content["features"]


def test_repr_is_short_and_unpacking_works(table):
    dataset = Dataset("toy", *table, label_names=("a", "b", "c"))
    assert repr(dataset) == "Dataset('toy', 7 samples, 4 features, 3 labels)"
    X, D = dataset
    assert X is table[0]
    np.testing.assert_allclose(D, table[1], rtol=0, atol=1e-15)
    with pytest.raises(AttributeError):
        dataset.name = "other"


# by name


def test_data_home_comes_before_the_environment_before_the_cache(no_data, tmp_path, monkeypatch):
    folders = [tmp_path / "home", tmp_path / "environment", no_data]
    for position, folder in enumerate(folders):
        write_entry(folder, "SJAFFE", features=np.full((213, 243), position + 0.5))
    monkeypatch.setenv("SKLDL_DATA", str(folders[1]))
    assert load_dataset("SJAFFE", data_home=folders[0], verify=False).X[0, 0] == 0.5
    assert load_dataset("SJAFFE", verify=False).X[0, 0] == 1.5
    monkeypatch.delenv("SKLDL_DATA")
    assert load_dataset("SJAFFE", verify=False).X[0, 0] == 2.5


def test_places_that_lack_the_file_are_passed_over(no_data, tmp_path, monkeypatch):
    monkeypatch.setenv("SKLDL_DATA", str(tmp_path / "nowhere"))
    X = write_entry(no_data, "SJAFFE")
    dataset = load_dataset("s-jaffe", data_home=tmp_path, verify=False)
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.label_names[0] == "happiness"
    assert "Lyons" in dataset.citation
    assert dataset.feature_names is None


def test_file_under_another_spelling_is_found(no_data):
    write_entry(no_data, "SJAFFE")
    (no_data / "readme.mat").write_text("no data")
    (no_data / "SJAFFE.mat").rename(no_data / "s-jaffe.MAT")
    assert load_dataset("SJAFFE", verify=False).source == str(no_data / "s-jaffe.MAT")


def test_not_found_says_where_and_how(no_data, tmp_path, monkeypatch):
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("Movie", data_home=tmp_path)
    message = str(caught.value)
    assert "SKLDL_DATA is not set" in message
    assert f"data_home: {tmp_path}" in message
    assert f"{no_data} (no such folder)" in message
    assert "fetch_dataset('Movie')" in message
    assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(DatasetNotFoundError, match=r"fetch_dataset\('Human_Gene', verify=False\)"):
        load_dataset("Human Gene")


def test_home_folder_is_expanded(no_data, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_entry(tmp_path / "ldl", "SJAFFE")
    assert load_dataset("SJAFFE", data_home="~/ldl", verify=False).n_samples == 213
    assert load_dataset("~/ldl/SJAFFE.mat").n_samples == 213


def test_wrong_checksum_is_refused_unless_told(no_data):
    write_entry(no_data, "SJAFFE")
    with pytest.raises(DatasetError, match=r"not the published file of SJAFFE: its sha256 is .* verify=False"):
        load_dataset("SJAFFE")


def test_wrong_size_is_refused(no_data):
    write_entry(no_data, "SJAFFE", n_samples=200)
    with pytest.raises(DatasetError, match="holds 200 rows, 243 features and 6 labels; SJAFFE of the paper has 213"):
        load_dataset("SJAFFE")


def test_resaved_natural_scene_loads_in_double_precision(no_data):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 294)).astype(np.float32)
    write_entry(no_data, "Natural_Scene", features=X)
    dataset = load_dataset("Natural Scene")
    assert dataset.X.dtype == np.float64
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.label_names[-1] == "sun"


def test_shorter_human_gene_warns(no_data):
    write_entry(no_data, "Human_Gene", n_samples=17892)
    with pytest.warns(UserWarning, match=r"holds 17892 rows, .* has 30542"):
        dataset = load_dataset("Human_Gene")
    assert dataset.n_samples == 17892
    assert dataset.label_names[67] == "label_67"


def test_built_in_names(no_data):
    assert load_dataset("lexicon").tokens is not None
    artificial = load_dataset("Artificial")
    assert artificial.n_samples == 500
    assert artificial.X_test.shape == (40401, 3)
    np.testing.assert_array_equal(artificial.X, load_dataset("artificial").X)


def test_options_for_files_are_refused_with_a_name(no_data):
    with pytest.raises(DatasetError, match="labels= is for files given by path; 'Movie' has fixed columns"):
        load_dataset("Movie", labels=["a", "b"])


def test_text_that_is_neither_name_nor_file(no_data, tmp_path, monkeypatch):
    with pytest.raises(UnknownDatasetError, match=r"'Yeast_alphaa' is neither .* Did you mean Yeast_alpha"):
        load_dataset("Yeast_alphaa")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table").write_text("x")
    with pytest.raises(DatasetError, match="table has only one column"):
        load_dataset("table")


# by path


def test_missing_file_folder_and_ending(tmp_path):
    with pytest.raises(DatasetNotFoundError, match="There is no file"):
        load_dataset(tmp_path / "none.mat")
    with pytest.raises(DatasetNotFoundError, match=r"There is no file none.csv .looked at /"):
        load_dataset("none.csv")
    with pytest.raises(DatasetError, match="is a folder"):
        load_dataset(tmp_path)
    (tmp_path / "data.xlsx").write_bytes(b"PK\0")
    with pytest.raises(DatasetError, match=r"data\.xlsx is not text"):
        load_dataset(tmp_path / "data.xlsx")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_unreadable_file(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("x,label_a,label_b\n1,0.5,0.5\n")
    path.chmod(0)
    with pytest.raises(DatasetError, match="cannot be read: Permission denied"):
        load_dataset(path)


def test_error_of_the_system_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "far.csv"
    path.write_text("x,label_a,label_b\n1,0.5,0.5\n")

    def broken(self, *arguments, **options):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(path), "open", broken)
    with pytest.raises(DatasetError, match=r"far\.csv cannot be read: Input/output error"):
        load_dataset(path)


@pytest.mark.parametrize("keys", [("features", "labels"), ("X", "D"), ("x", "Y"), ("data", "labelDistribution")])
@pytest.mark.parametrize("suffix", [".mat", ".npz"])
def test_usual_names_of_arrays(tmp_path, table, keys, suffix):
    path = tmp_path / f"mine{suffix}"
    content = dict(zip(keys, table, strict=True))
    io.savemat(path, content) if suffix == ".mat" else np.savez(path, **content)
    dataset = load_dataset(str(path))
    np.testing.assert_array_equal(dataset.X, table[0])
    np.testing.assert_allclose(dataset.D, table[1], rtol=1e-15)
    assert dataset.name == "mine"
    assert dataset.label_names == ("label_0", "label_1", "label_2")
    assert dataset.X.flags.c_contiguous


@pytest.mark.parametrize("suffix", [".mat", ".npz"])
def test_names_of_columns_are_read(tmp_path, table, suffix):
    path = tmp_path / f"mine{suffix}"
    X, D = table
    if suffix == ".mat":
        names = np.array(["sad", "calm", "happy"], dtype=object)  # becomes a cell array
        io.savemat(path, {"features": X, "labels": D, "label_names": names})
    else:
        np.savez(path, X=X, D=D, label_names=["sad", "calm", "happy"], feature_names=list("abcd"))
        assert load_dataset(path).feature_names == ("a", "b", "c", "d")
    assert load_dataset(path).label_names == ("sad", "calm", "happy")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "'label_names' has 2 entries for 3 columns"),
        (["a", "b", "a"], "'label_names' holds 'a' more than once"),
        ([1, 2, 3], "'label_names' must hold texts"),
    ],
)
def test_bad_names_of_columns(tmp_path, table, names, message):
    np.savez(tmp_path / "mine.npz", X=table[0], D=table[1], label_names=names)
    with pytest.raises(DatasetError, match=message):
        load_dataset(tmp_path / "mine.npz")


def test_arrays_can_be_named(tmp_path, table):
    path = tmp_path / "odd.npz"
    np.savez(path, train=table[0], soft=table[1], hard=table[1].round())
    with pytest.raises(
        DatasetError, match=r"holds: train \(7, 4\), soft \(7, 3\), .*none of which is known as the feat"
    ):
        load_dataset(path)
    assert load_dataset(path, features="train", labels="soft").n_labels == 3
    with pytest.raises(DatasetError, match="holds no 'smooth'; it holds: train"):
        load_dataset(path, features="train", labels="smooth")
    with pytest.raises(DatasetError, match=r"labels=3 must be the name of an array in a \.npz file"):
        load_dataset(path, labels=3)
    with pytest.raises(DatasetError, match="drop= is about columns of tables"):
        load_dataset(path, drop=["id"])


def test_two_arrays_that_could_be_the_labels(tmp_path, table):
    path = tmp_path / "two.mat"
    io.savemat(path, {"X": table[0], "D": table[1], "y": table[1].round()})
    with pytest.raises(DatasetError, match=r"D and y could all be the labels. .* load_dataset\(path, labels='D'\)"):
        load_dataset(path)
    assert load_dataset(path, labels="D").n_samples == 7


def test_empty_archive(tmp_path):
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(DatasetError, match="holds: nothing"):
        load_dataset(tmp_path / "empty.npz")


def test_sparse_features_stay_sparse(tmp_path, table):
    X = sparse.random(7, 4, density=0.5, format="csc", random_state=0)
    io.savemat(tmp_path / "s.mat", {"features": X, "labels": sparse.csc_matrix(table[1])})
    dataset = load_dataset(tmp_path / "s.mat")
    assert dataset.X.format == "csr"
    np.testing.assert_array_equal(dataset.X.toarray(), X.toarray())
    assert isinstance(dataset.D, np.ndarray)


@pytest.mark.parametrize(("n_features", "every", "expected"), [(600, 20, True), (600, 5, False), (100, 20, False)])
def test_wide_tables_of_zeros_become_sparse(tmp_path, n_features, every, expected):
    X = np.zeros((6, n_features))
    X[:, ::every] = 1.5
    np.savez(tmp_path / "wide.npz", X=X, D=np.full((6, 2), 0.5))
    loaded = load_dataset(tmp_path / "wide.npz").X
    assert sparse.issparse(loaded) is expected
    np.testing.assert_array_equal(loaded.toarray() if expected else loaded, X)


@pytest.mark.parametrize(("stored", "expected"), [("f4", "f4"), ("f2", "f8"), ("i4", "f8"), ("u1", "f8"), ("?", "f8")])
def test_types_of_features(tmp_path, stored, expected):
    np.savez(tmp_path / "t.npz", X=np.eye(3).astype(stored), D=np.full((3, 2), 0.5, dtype="f4"))
    X, D = load_dataset(tmp_path / "t.npz")
    assert X.dtype == np.dtype(expected)
    assert D.dtype == np.float64


def test_small_errors_of_the_sum_are_corrected(tmp_path):
    D = np.array([[0.3334, 0.3333, 0.3332], [0.2, 0.3, 0.5]])
    np.savez(tmp_path / "t.npz", X=np.eye(2), D=D)
    assert load_dataset(tmp_path / "t.npz").D.sum(axis=1).tolist() == [1, 1]


def bad_content(X, D):
    counts = np.round(D * 10)
    with_gap, with_inf, negative = D.copy(), X.copy(), D.copy()
    with_gap[2] = [0.7, 0.7, np.nan]
    with_inf[3, 2] = np.inf
    negative[1] = [1.5, -0.5, 0]
    zero = D.copy()
    zero[4] = 0
    return {
        "counts": (X, counts + 1, r"Row 0 of labels sums to 1\d.*convert=skldl.distributions.from_counts"),
        "gap": (X, with_gap, "observed degrees of row 2 of labels sum to 1.4"),
        "inf": (with_inf, D, r"'features' holds inf in row 3, column 2 \(counted from 0\); 1 such"),
        "sparse nan": (sparse.csr_matrix(with_inf), D, "'features' holds inf in row 3, column 2"),
        "negative": (X, negative, "Row 1 of labels holds the negative degree -0.5"),
        "zero": (X, zero, "Row 4 of labels is all zero"),
        "one label": (X, np.ones((7, 1)), "labels has 1 label"),
        "lengths": (X[:5], D, r"'features' has the shape \(5, 4\) and 'labels' \(7, 3\), so their numbers of rows"),
        "transposed": (X.T, D.T, "They look transposed"),
        "labels transposed": (X, D.T, "'labels' looks transposed"),
        "features transposed": (X.T, D, "'features' looks transposed"),
        "complex": (X + 1j, D, "'features' holds complex numbers"),
        "text": (X, np.array([["a", "b", "c"]] * 7), "'labels' holds text"),
        "struct": ({"a": 1}, D, "'features' holds structs"),
        "cells": (np.array([[1, "x"]] * 7, dtype=object), D, "'features' holds cells"),
        "cube": (np.zeros((7, 2, 2)), D, r"'features' has the shape \(7, 2, 2\)"),
        "empty": (np.zeros((7, 0)), D, "'features' is empty"),
    }


@pytest.mark.parametrize("case", bad_content(np.ones((7, 4)), np.full((7, 3), 1 / 3)))
def test_bad_content_of_a_mat_file(tmp_path, table, case):
    X, D, message = bad_content(*table)[case]
    path = tmp_path / "bad.mat"
    io.savemat(path, {"features": X, "labels": D})
    with pytest.raises(DatasetError, match=message) as caught:
        load_dataset(path)
    assert str(path) in str(caught.value)


def test_converter_makes_distributions_of_counts(tmp_path, table):
    np.savez(tmp_path / "c.npz", X=table[0], D=table[1] * 40)
    np.testing.assert_allclose(load_dataset(tmp_path / "c.npz", convert=normalize).D, table[1], rtol=1e-14)
    np.savez(tmp_path / "c.npz", X=table[0], D=-table[1])
    with pytest.raises(DatasetError, match=r"c.npz: Cell .* negative"):
        load_dataset(tmp_path / "c.npz", convert=normalize)


def test_truncated_files_at_every_length(tmp_path, table):
    io.savemat(tmp_path / "whole.mat", {"features": table[0], "labels": table[1]}, do_compression=True)
    np.savez_compressed(tmp_path / "whole.npz", X=table[0], D=table[1])
    for suffix in (".mat", ".npz"):
        whole = (tmp_path / f"whole{suffix}").read_bytes()
        for length in range(0, len(whole) - 1, 23):
            path = tmp_path / f"cut{suffix}"
            path.write_bytes(whole[:length])
            with pytest.raises(DatasetError, match="cut"):
                load_dataset(path)


def test_damaged_files_give_an_error_or_valid_data(tmp_path, table):
    io.savemat(tmp_path / "whole.mat", {"features": table[0], "labels": table[1]}, do_compression=True)
    whole = (tmp_path / "whole.mat").read_bytes()
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(120, len(whole), size=3):
            content[place] ^= int(rng.integers(1, 256))
        (tmp_path / "damaged.mat").write_bytes(bytes(content))
        try:
            load_dataset(tmp_path / "damaged.mat")
        except DatasetError:
            rejected += 1
    assert rejected > 50


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        (".mat", b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(600), r"MATLAB 7\.3 .*'-v7'"),
        (".mat", b"\x89HDF\r\n\x1a\n" + bytes(600), "HDF5"),
        (".mat", bytes(512) + b"\x89HDF\r\n\x1a\n", "HDF5"),
        (".mat", b"", "The file is empty"),
        (".mat", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
        (".mat", b"\n<!DOCTYPE html><html>" + b"x" * 200, "web page"),
        (".mat", b"PK\x03\x04" + bytes(200), "zip archive"),
        (".mat", b"x1,x2,label_a\n" * 20, "cannot be read as a MATLAB file .* first bytes are b'x1,x2,label_'"),
        (".npz", b"", "The file is empty"),
        (".npz", b"\x93NUMPY\x01\x00" + bytes(100), "single array"),
        (".npz", b"not a zip", "not a zip archive"),
    ],
)
def test_files_that_are_something_else(tmp_path, suffix, content, message):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        load_dataset(path)


def test_pickles_are_not_opened(tmp_path, table):
    np.savez(tmp_path / "p.npz", X=table[0], D=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DatasetError, match="pickled Python objects, which are not read"):
        load_dataset(tmp_path / "p.npz")


def test_single_sparse_matrix_is_explained(tmp_path):
    sparse.save_npz(tmp_path / "s.npz", sparse.eye(3, format="csr"))
    with pytest.raises(DatasetError, match=r"one sparse matrix.*savemat"):
        load_dataset(tmp_path / "s.npz")


def test_rankings_file_names_its_keys(tmp_path):
    io.savemat(tmp_path / "rankings.mat", {"pic": np.ones((10, 10))})
    with pytest.raises(DatasetError, match=r"holds: pic \(10, 10\); none of which is known as the features"):
        load_dataset(tmp_path / "rankings.mat")
