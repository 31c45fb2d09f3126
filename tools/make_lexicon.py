"""Make the bundled file ``src/skldl/data/bundled/vader_lexicon.npz`` from ``vader_lexicon.txt``.

Get the source, unpack it and run this script:

    pip download --no-deps vaderSentiment==3.3.2
    python -m zipfile -e vaderSentiment-3.3.2-py2.py3-none-any.whl vader
    python tools/make_lexicon.py vader/vaderSentiment/vader_lexicon.txt src/skldl/data/bundled/vader_lexicon.npz

The source has one line per token: token, mean, standard deviation and the ten ratings, with tabs between. Fourteen
tokens stand there twice; the second line is kept, as VADER itself does when it reads the file into a dictionary.
The same source gives the same bytes, given the same versions of numpy and zlib.
"""

import json
import sys
from pathlib import Path

import numpy as np

N_RATERS = 10


def read_lexicon(text: str) -> dict[str, list[int]]:
    """Ratings of each token, in the order in which the tokens' kept lines stand in the source."""
    ratings: dict[str, list[int]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        token, _, _, votes = line.split("\t")
        values = json.loads(votes)
        if len(values) != N_RATERS or not all(isinstance(value, int) and -4 <= value <= 4 for value in values):
            raise ValueError(f"Line {number} holds {votes}, not ten integers from -4 to 4.")
        ratings.pop(token, None)  # so that the later line also takes its place in the order
        ratings[token] = values
    return ratings


def write_lexicon(ratings: dict[str, list[int]], target: Path) -> None:
    """Write tokens (UTF-8, one per line, as bytes) and ratings (int8) without any pickled object."""
    tokens = np.frombuffer("\n".join(ratings).encode("utf-8"), dtype=np.uint8)
    np.savez_compressed(target, tokens=tokens, votes=np.array(list(ratings.values()), dtype=np.int8))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python tools/make_lexicon.py vader_lexicon.txt vader_lexicon.npz")
    lexicon = read_lexicon(Path(sys.argv[1]).read_text(encoding="utf-8"))
    write_lexicon(lexicon, Path(sys.argv[2]))
    print(f"{sys.argv[2]}: {len(lexicon)} tokens")
