"""Data for label distribution learning: bundled, generated, of the paper, and your own."""

from skldl.data._artificial import artificial_manifold, make_artificial
from skldl.data._catalogue import CATALOGUE, CatalogueEntry, find_entry
from skldl.data._dataset import Dataset
from skldl.data._describe import Card, describe, list_datasets, statistics_table
from skldl.data._fetch import fetch_dataset
from skldl.data._files import load_dataset
from skldl.data._lexicon import load_lexicon
from skldl.data._tweets import load_tweets
from skldl.data._vader_texts import fetch_vader_texts

__all__ = [
    "CATALOGUE",
    "Card",
    "CatalogueEntry",
    "Dataset",
    "artificial_manifold",
    "describe",
    "fetch_dataset",
    "fetch_vader_texts",
    "find_entry",
    "list_datasets",
    "load_dataset",
    "load_lexicon",
    "load_tweets",
    "make_artificial",
    "statistics_table",
]
