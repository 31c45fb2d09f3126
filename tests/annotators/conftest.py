"""Votes of simulated raters whose errors are known."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def simulate():
    """Make votes of raters with given confusion matrices: truths, and a long table of votes."""

    def make(confusion, n_items, per_item, seed=0, prior=None):
        generator = np.random.default_rng(seed)
        n_raters, n_labels, _ = confusion.shape
        truth = generator.choice(n_labels, n_items, p=prior)
        rater = np.concatenate([generator.permutation(n_raters)[:per_item] for _ in range(n_items)])
        item = np.repeat(np.arange(n_items), per_item)
        cumulative = confusion[rater, truth[item]].cumsum(axis=1)
        label = (generator.random((len(item), 1)) > cumulative).sum(axis=1)
        return truth, {"item": item, "who": rater, "says": np.minimum(label, n_labels - 1)}

    return make


@pytest.fixture(scope="session")
def one_coin_raters():
    """Confusion matrices of raters who are right with given probabilities."""

    def make(reliability, n_labels):
        wrong = (1 - np.asarray(reliability)) / (n_labels - 1)
        confusion = np.repeat(wrong[:, None, None], n_labels, axis=1).repeat(n_labels, axis=2)
        confusion[:, np.arange(n_labels), np.arange(n_labels)] = np.asarray(reliability)[:, None]
        return confusion

    return make
