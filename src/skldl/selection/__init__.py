"""Choosing a model: candidates and their settings, folds, protocols, and the search over all of them."""
