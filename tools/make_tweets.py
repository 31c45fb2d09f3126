"""Make the bundled file ``src/skldl/data/bundled/vader_tweets.npz`` from the archive ``hutto_ICWSM_2014.tar.gz``.

Get the source distribution of vaderSentiment, unpack it and run this script:

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    tar xzf vaderSentiment-3.3.2.tar.gz
    python tools/make_tweets.py vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz \
        src/skldl/data/bundled/vader_tweets.npz

Kept are the texts of ``tweets_GroundTruth.txt`` and the single ratings of ``tweets_anonDataRatings.txt``, in the order
of the source. The same source gives the same bytes, given the same versions of numpy and zlib.
"""

import sys
from pathlib import Path

import numpy as np

from skldl.data._vader import read_archive


def write_tweets(texts: list[str], ratings: list[list[int]], target: Path) -> None:
    """Write texts (UTF-8, one per line, as bytes), ratings (int8, one after the other) and their numbers (uint8)."""
    if any("\n" in text for text in texts):
        raise ValueError("A text holds a line feed, which separates the texts in the file.")
    np.savez_compressed(
        target,
        texts=np.frombuffer("\n".join(texts).encode("utf-8"), dtype=np.uint8),
        ratings=np.array([rating for row in ratings for rating in row], dtype=np.int8),
        n_ratings=np.array([len(row) for row in ratings], dtype=np.uint8),
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python tools/make_tweets.py hutto_ICWSM_2014.tar.gz vader_tweets.npz")
    read = read_archive(Path(sys.argv[1]), "tweets")
    write_tweets(read.texts, read.ratings, Path(sys.argv[2]))
    print(f"{sys.argv[2]}: {len(read.texts)} texts, {sum(map(len, read.ratings))} ratings")
