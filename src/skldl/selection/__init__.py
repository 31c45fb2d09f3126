"""Choosing a model: candidates and their settings, folds, protocols, and the one search over all of them."""

from skldl.selection._candidate import BASELINE, Candidate
from skldl.selection._estimate import Estimate, estimate_choice
from skldl.selection._folds import assign_folds, derive_seed, hold_out, pairs_of
from skldl.selection._protocols import PROTOCOLS, Layout, Round, rounds_of, shares_choice
from skldl.selection._search import search
from skldl.selection._trials import Failure, SearchResult, Trials

__all__ = [
    "BASELINE",
    "PROTOCOLS",
    "Candidate",
    "Estimate",
    "Failure",
    "Layout",
    "Round",
    "SearchResult",
    "Trials",
    "assign_folds",
    "derive_seed",
    "estimate_choice",
    "hold_out",
    "pairs_of",
    "rounds_of",
    "search",
    "shares_choice",
]
