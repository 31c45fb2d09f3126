"""``skldl datasets``: list, describe and fetch datasets."""

from pathlib import Path

from cyclopts import App

from skldl.cli._options import naming_formats
from skldl.data import describe as describe_dataset
from skldl.data import fetch_dataset, list_datasets

app = App(name="datasets", result_action="return_value")


@app.default
def show() -> None:
    """List the datasets that are known by name, or describe or fetch one.

    For instance:

        skldl datasets
        skldl datasets describe Lexicon
    """
    print(list_datasets())


@app.command
@naming_formats
def describe(name: str, /) -> None:
    """Show the facts about a dataset: size, ranges, rank, zeros, entropy, and warnings.

    For instance:

        skldl datasets describe Artificial

    Parameters
    ----------
    name
        A name of the list, or a data file: a table ({tables}), or arrays ({arrays}).
    """
    print(describe_dataset(name))


@app.command
def fetch(name: str, /, *, data: Path | None = None) -> None:
    """Download a dataset of the list and check it.

    For instance:

        skldl datasets fetch Yeast_alpha

    Parameters
    ----------
    name
        A name of the list.
    data
        Folder for the file; by default the cache, which the other commands search too.
    """
    dataset = fetch_dataset(name, data_home=data)
    samples, features = dataset.X.shape
    print(f"{dataset.name}: {samples:,} rows, {features:,} features, {dataset.D.shape[1]} labels. {dataset.source}")
