"""Sparse training rows are checked before the search of neighbours computes with them."""

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

import skldl
from skldl._model_archive import _check_array_file
from skldl.testing import make_distributions

pytest.importorskip("skops")


@pytest.mark.parametrize("part", ["indptr", "indices"])
def test_wild_indices_are_refused_before_they_are_used(part):
    X, _ = make_distributions()
    content = io.BytesIO()
    sparse.save_npz(content, sparse.csr_matrix(X))
    arrays = dict(np.load(io.BytesIO(content.getvalue())))
    arrays[part][7] = -(2**31)
    changed, whole = io.BytesIO(), io.BytesIO()
    np.savez(changed, **arrays)
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr("rows.npz", changed.getvalue())
        with pytest.raises(ValueError, match="ind"):
            _check_array_file(archive, "rows.npz", 2**20)


def test_sparse_rows_are_read_again(tmp_path):
    X, D = make_distributions()
    model = skldl.AAKNN(n_neighbors=3).fit(sparse.csr_matrix(X), D)
    again = skldl.load(skldl.save(model, tmp_path / "rows.skldl"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
