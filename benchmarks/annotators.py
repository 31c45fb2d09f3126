"""Time and memory of `skldl.annotators` on many votes.

Run ``python benchmarks/annotators.py [n_votes n_items n_raters n_labels]`` with ``OMP_NUM_THREADS=1``; by default
2,000,000 votes of 5,000 raters for 200,000 items, five labels. Seconds are those of the processor, the memory is the
peak of the whole process.
"""

import resource
import sys
import time

import numpy as np

from skldl.annotators import DawidSkene, rater_table


def simulate(n_votes: int, n_items: int, n_raters: int, n_labels: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Votes of raters who are right with a probability of their own; one in ten answers at random."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, n_labels, n_items)
    each = n_votes // n_items
    reliability = generator.uniform(0.5, 0.95, n_raters)
    reliability[generator.random(n_raters) < 0.1] = 1 / n_labels
    item = np.repeat(np.arange(n_items), each)
    steps = generator.integers(1, n_raters // each, (n_items, each)).cumsum(axis=1)  # different raters for one item
    rater = ((generator.integers(0, n_raters, (n_items, 1)) + steps) % n_raters).ravel()
    right = generator.random(len(item)) < reliability[rater]
    other = (truth[item] + generator.integers(1, n_labels, len(item))) % n_labels
    order = generator.permutation(len(item))
    votes = {"item": item, "rater": rater, "label": np.where(right, truth[item], other)}
    return truth, {name: column[order] for name, column in votes.items()}


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(n_votes: int = 2_000_000, n_items: int = 200_000, n_raters: int = 5_000, n_labels: int = 5) -> None:
    truth, votes = simulate(n_votes, n_items, n_raters, n_labels)
    print(f"{len(votes['item']):,} votes, {n_items:,} items, {n_raters:,} raters, {n_labels} labels")
    print(f"before: {peak_megabytes():.0f} MB")
    columns = {"item": "item", "annotator": "rater", "label": "label"}
    for name in ("one-coin", "confusion", "ordinal"):
        start = time.process_time()
        model = DawidSkene(name).fit(votes, **columns)
        fitted = time.process_time()
        table = rater_table(model)
        done = time.process_time()
        right = np.mean(np.array(model.labels_) == truth[np.array(model.items_)])
        print(
            f"{name:10s} fit {fitted - start:5.1f} s ({model.n_iter_} steps), table {done - fitted:4.1f} s, "
            f"{right:.4f} of the truths found; peak {peak_megabytes():.0f} MB; {table}"
        )
    part = {name: column[: len(column) // 20 * 19] for name, column in votes.items()}
    rest = {name: column[len(column) // 20 * 19 :] for name, column in votes.items()}
    model = DawidSkene().fit(part, **columns)
    start = time.process_time()
    model.partial_fit(rest, **columns)
    print(f"partial_fit with the last 5 % of the votes: {time.process_time() - start:.1f} s ({model.n_iter_} steps)")
    print(f"peak {peak_megabytes():.0f} MB")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
