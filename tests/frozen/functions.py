"""Cases of the frozen numbers besides predictions: measures, conversions, raters, enhancers, uncertainty, selection."""

import contextlib
import csv
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cases import CHUNK_ROWS, Case, load
from scipy import sparse

import skldl
from skldl import (
    annotators,
    chunks,
    data,
    distributions,
    enhancement,
    incomplete,
    metrics,
    selection,
    simplex,
    uncertainty,
)
from skldl.data import Dataset
from skldl.experiments import Study, run_study
from skldl.experiments.statistics import compare
from skldl.metrics.selection import select_measures
from skldl.selection import Candidate
from skldl.tabular import TableEncoder, column_effects, feature_weights
from skldl.testing import make_distributions

FUNCTIONS: dict[str, Callable[[], Any]] = {}


def frozen(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that returns numbers as a case, under its own name."""
    FUNCTIONS[function.__name__.strip("_").replace("_", " ")] = function
    return function


def function_cases() -> Iterator[Case]:
    """One case for each function that is registered here, and one for each measure."""
    for name, function in FUNCTIONS.items():
        yield Case(name, function)
    for name in metrics.MEASURES:
        yield Case(f"measure {name}", functools.partial(_measure, name))


def flat(*parts: Any) -> np.ndarray:
    """All numbers of several arrays, scalars, mappings or sequences, one after the other."""
    numbers: list[np.ndarray] = []
    for part in parts:
        if isinstance(part, dict):
            numbers.append(flat(*part.values()))
        elif sparse.issparse(part):
            numbers.append(part.toarray().ravel())
        elif isinstance(part, list | tuple) and any(
            isinstance(entry, list | tuple | dict | np.ndarray) for entry in part
        ):
            numbers.append(flat(*part))
        elif isinstance(part, str) or (isinstance(part, Iterable) and any(isinstance(entry, str) for entry in part)):
            continue
        else:
            numbers.append(np.asarray(part, dtype=np.float64).ravel())
    return np.concatenate(numbers) if numbers else np.empty(0)


def numbers_in(csv_text: str) -> np.ndarray:
    """All cells of comma-separated values that are numbers, below the first line."""
    cells = [cell for row in list(csv.reader(csv_text.splitlines()))[1:] for cell in row]
    numbers = []
    for cell in cells:
        with contextlib.suppress(ValueError):
            numbers.append(float(cell))
    return np.array(numbers)


def _attributes(thing: Any, *names: str) -> np.ndarray:
    return flat(*(getattr(thing, name) for name in names))


def _pairs(n_labels: int = 6, n_rows: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True distributions with zeros, predictions, and weights with zeros."""
    generator = np.random.default_rng(5)
    D = generator.dirichlet(np.full(n_labels, 0.4), n_rows)
    D[::3, 0], D[5] = 0.0, np.eye(n_labels)[2]
    D /= D.sum(axis=1, keepdims=True)
    return D, generator.dirichlet(np.ones(n_labels), n_rows), generator.integers(0, 3, n_rows).astype(float)


def _counts() -> np.ndarray:
    generator = np.random.default_rng(6)
    return np.array(
        [generator.multinomial(generator.integers(1, 9), p) for p in generator.dirichlet([1, 2, 3, 0.5], 60)]
    )


def _votes() -> dict[str, list[Any]]:
    """Long votes of six raters, one of them careless, of three labels, with gaps."""
    generator = np.random.default_rng(7)
    truth = generator.integers(0, 3, 40)
    votes: dict[str, list[Any]] = {"item": [], "who": [], "label": []}
    for item, label in enumerate(truth):
        for rater in range(6):
            if generator.random() < 0.7:
                right = generator.random() < (0.4 if rater == 5 else 0.8)
                votes["item"].append(item)
                votes["who"].append(f"r{rater}")
                votes["label"].append(int(label if right else generator.integers(0, 3)) + 1)
    return votes


LONG = {"item": "item", "annotator": "who", "label": "label"}


# -- measures


def _measure(name: str) -> Any:
    D, P, weight = _pairs()
    function = getattr(metrics, name)
    rows = [metrics.evaluate(D[[row]], P[[row]], measures=[name])[name] for row in range(6)]
    return [function(D, P), function(D, P, weight), function(P, P), *rows]


@frozen
def _evaluate_with_the_six_measures() -> Any:
    D, P, weight = _pairs()
    return flat(
        metrics.evaluate(D, P), metrics.evaluate(D, P, weight), metrics.evaluate(D.astype("f4"), P.astype("f4"))
    )


@frozen
def _skill() -> Any:
    D, P, weight = _pairs()
    reference = D.mean(axis=0, keepdims=True)
    groups = np.arange(len(D)) // 4
    results = (
        metrics.skill(D, P, reference),
        metrics.skill(D, P, reference, weight),
        metrics.skill(D, P, reference, groups=groups, confidence=0.8),
        metrics.skill_of_losses(P[:, 0], P[:, 1], weight),
    )
    ratio = metrics.skill_ratio(P[0], P[1])
    return flat(*(_attributes(result, "real", "low", "high") for result in results), ratio)


@frozen
def _skill_with_counts() -> Any:
    counts = _counts()
    D = counts / counts.sum(axis=1, keepdims=True)
    P = np.random.default_rng(8).dirichlet(np.ones(4), len(D))
    skill = metrics.skill(D, P, D.mean(axis=0, keepdims=True), counts=counts)
    values = metrics.evaluate(D, P, counts=counts)
    return flat(_attributes(skill, "real", "low", "high", "floor", "explained"), values)


@frozen
def _noise_floor() -> Any:
    floors = uncertainty.noise_floor(_counts(), random_state=0)
    some = uncertainty.noise_floor(
        _counts(), ["kullback_leibler", "squared_euclidean"], sample_weight=np.arange(60.0), groups=np.arange(60) // 3
    )
    return flat(
        *(_attributes(floor, "value", "standard_error", "n_rows") for floor in (*floors.values(), *some.values()))
    )


@frozen
def _choice_of_measures() -> Any:
    result = select_measures(n_experiments=4, n_pairs=60, n_labels=5)
    own = select_measures(
        *_pairs()[:2], n_experiments=4, n_pairs=20, measures=["clark", "cosine", "canberra", "dice"], n_measures=2
    )
    names = ("correlation", "distances", "instability")  # clusters of measures that are equal but for rounding vary
    return flat(_attributes(result, *names), _attributes(own, *names))


# -- conversions


@frozen
def _distributions_from_votes() -> Any:
    votes = distributions.from_votes(_votes(), **LONG)
    smooth = distributions.from_votes(_votes(), **LONG, smoothing=0.5)
    alphas = [votes.alpha(level) for level in ("nominal", "ordinal", "interval")]
    return flat(votes.D, votes.counts, votes.sample_weight, alphas, smooth.D, smooth.smoothing)


@frozen
def _noise_ceiling_of_votes() -> Any:
    votes = distributions.from_votes(_votes(), **LONG)
    ceilings = votes.noise_ceiling(n_splits=4).values()
    return flat(*(_attributes(ceiling, "ceiling", "split_half", "split_half_std") for ceiling in ceilings))


@frozen
def _distributions_from_counts_scores_and_labels() -> Any:
    counts = _counts()
    return flat(
        distributions.from_counts(counts),
        *distributions.from_counts(counts, smoothing=0.3, return_weight=True),
        distributions.from_scores(counts + 0.5, power=2.0),
        distributions.from_scores(counts - 2.0, method="softmax", temperature=2.0),
        distributions.from_labels([0, 2, 1], classes=[0, 1, 2]),
        distributions.from_label_sets([[1, 1, 0], [0, 0, 0]], empty="uniform"),
        distributions.from_neighbours([3.2, 5.0], labels=[1, 2, 3, 4, 5], scale=1.3),
        distributions.from_neighbours([0], labels=[0, 90, 180, 270], scale=90, shape="triangular", circular=True),
        distributions.from_similarity([0, 2], [[3, 1, 0], [1, 2, 1], [0, 1, 3]], classes=[0, 1, 2]),
    )


@frozen
def _distributions_from_rankings() -> Any:
    several = [[["a", "b"], ["a"], ["b", "a", "c"]], [["c", "a"], ["c", "b"]], [["d"]]]
    methods = [
        distributions.from_rankings(several, labels=list("abcd"), method=m) for m in ("program", "plackett-luce")
    ]
    return flat(*methods, distributions.from_rankings(several, labels=list("abcd"), margin=0.1, evenness=0.01))


@frozen
def _back_from_distributions() -> Any:
    D = _pairs()[0]
    examples = distributions.to_weighted_examples(np.arange(len(D))[:, None], D)
    return flat(
        distributions.to_labels(D),
        distributions.to_label_sets(D, mass=0.7),
        distributions.to_label_sets(D, top=2),
        distributions.expected_value(D, np.arange(6)),
        distributions.rank_labels(D),
        *examples,
    )


@frozen
def _simplex() -> Any:
    D, P, _ = _pairs()
    scores = 5 * P - 1
    functions = (simplex.project, simplex.softmax, simplex.log_softmax)
    return flat(*(f(scores) for f in functions), simplex.normalize(7 * P), simplex.smooth_zeros(D), simplex.entropy(D))


# -- raters


def _dawid_skene(model: str) -> Any:
    fitted = annotators.DawidSkene(model).fit(_votes(), **LONG)
    table = annotators.rater_table(fitted).columns()
    numbers = [
        table[name] for name in ("reliability", "reliability_low", "informedness", "informedness_high", "weight")
    ]
    severity = [fitted.severity_, fitted.spread_, table["severity"]] if model == "ordinal" else []
    weighted = distributions.from_votes(_votes(), **LONG, weights=fitted).D
    more = fitted.partial_fit({"item": [0, 1, 40], "who": ["new", "new", "r0"], "label": [1, 2, 3]}, **LONG)
    return flat(weighted, numbers, severity, more.posterior_, more.class_prior_, more.confusion_, more.objective_)


for _model in ("confusion", "one-coin", "ordinal"):
    FUNCTIONS[f"raters {_model}"] = functools.partial(_dawid_skene, _model)


# -- enhancers


ENHANCERS: dict[str, Callable[[], Any]] = {
    "FCM": enhancement.FCM,
    "GLLE": lambda: enhancement.GLLE(n_neighbors=8),
    "KM": enhancement.KM,
    "LESC": enhancement.LESC,
    "ML": lambda: enhancement.ML(n_neighbors=8, max_iter=50),
    "PropagationEnhancer": enhancement.PropagationEnhancer,
}


def _enhance(name: str, set_name: str) -> Any:
    rows = load(set_name)
    L = distributions.to_label_sets(rows.D, mass=0.5)
    enhancer = ENHANCERS[name]()
    first = enhancer.fit_transform(rows.X, L)
    new = distributions.to_label_sets(rows.D_new, mass=0.5)
    second = enhancer.transform(rows.X_new, new) if hasattr(enhancer, "transform") else ()
    model = enhancement.EnhancedLDL(ENHANCERS[name](), skldl.SABFGS(alpha=1e-3, fit_intercept=True)).fit(rows.X, rows.D)
    return flat(first, second, model.predict(rows.X_new))


for _name in ENHANCERS:
    FUNCTIONS[f"enhancer {_name}"] = functools.partial(_enhance, _name, "weighted")


# -- uncertainty


def _linear() -> Any:
    return skldl.SABFGS(alpha=1e-3, fit_intercept=True)


def _region(method: str, score: str, **settings: Any) -> Any:
    X, D = make_distributions(150, 4, 3, random_state=4)
    model = uncertainty.ConformalLDL(_linear(), method=method, random_state=0, **settings)
    name = "conformity_score" if hasattr(model, "conformity_score") else "score"  # before
    model.set_params(**{name: score}).fit(X[:120], D[:120])
    region = model.predict_region(X[120:], level=0.8)
    return flat(_attributes(region, "center", "radius", "lower", "upper"), region.contains(D[120:]))


for _score in ("total_variation", "kullback_leibler", "label"):
    FUNCTIONS[f"region split {_score}"] = functools.partial(_region, "split", _score)
    if _score != "kullback_leibler":
        FUNCTIONS[f"region cv+ {_score}"] = functools.partial(_region, "cv+", _score)
FUNCTIONS["region adaptive"] = functools.partial(_region, "split", "total_variation", adaptive=True)


@frozen
def _dirichlet_spread() -> Any:
    X, D = make_distributions(150, 4, 3, random_state=4)
    numbers = []
    for concentration in ("constant", "features"):
        model = uncertainty.DirichletSpread(_linear(), concentration=concentration, n_folds=3, random_state=0)
        model.fit(X[:120], D[:120])
        curve = model.coverage(X[120:], D[120:])
        numbers += [model.predict_concentration(X[120:]), *model.predict_interval(X[120:], 0.8)]
        numbers += [model.log_likelihood(X[120:], D[120:]), curve.observed, model.sample(X[120:], 2, random_state=0)]
    return flat(*numbers)


@frozen
def _calibration_maps() -> Any:
    X, D = make_distributions(150, 4, 3, random_state=4)
    methods = ("none", "temperature", "vector", "shrink", "auto")
    models = [uncertainty.CalibratedLDL(skldl.AAKNN(1), method=m, n_folds=3, random_state=0) for m in methods]
    return flat(*(model.fit(X[:120], D[:120]).predict(X[120:]) for model in models), models[-1].scores_)


@frozen
def _shares_of_what_can_be_explained() -> Any:
    curve = uncertainty.coverage_curve(np.linspace(0.01, 0.99, 33))
    return flat(uncertainty.explainable_share(0.055, 0.1, 0.05), curve.levels, curve.observed, curve.error)


# -- data


@frozen
def _artificial_data() -> Any:
    X, D = data.make_artificial(30, random_state=0)
    manifold = data.artificial_manifold()
    D = _pairs()[0]
    return flat(
        X,
        *(array[::500] for array in manifold),
        data.gaussian_log_ratio_noise(D, 0.3, random_state=0),
        data.exchange_rows(D, 0.3, random_state=0),
    )


@frozen
def _gaps() -> Any:
    D = _pairs()[0]
    mechanisms = [
        data.make_missing(D, 0.4, random_state=0),
        data.make_missing(D, 0.4, renormalise=True, random_state=1),
    ]
    rows = load("missing")
    completed = incomplete.complete(rows.X, rows.D, skldl.IncomLDL(alpha=1e-2, max_iter=30, missing="degrees"))
    return flat(*(np.nan_to_num(array, nan=-1.0) for array in mechanisms), completed)


@frozen
def _bundled_sets() -> Any:
    lexicon, tweets = data.load_lexicon(), data.load_tweets(200)
    place = np.cos(np.arange(len(lexicon.D)))
    seen = np.cos(np.arange(len(tweets.D)))
    return flat(place @ lexicon.D, lexicon.X.T @ place, seen @ tweets.D, tweets.X.T @ seen)


# -- chunks


def _in_chunks() -> tuple[Any, Any, Any, Any]:
    rows = load("weighted")
    model = _linear().fit(rows.X, rows.D, sample_weight=rows.sample_weight)
    return rows, model, chunks.ArrayRows(rows.X, rows.D, rows.sample_weight, chunk_rows=11), rows.D.mean(axis=0)


@frozen
def _scores_in_chunks() -> Any:
    rows, model, source, mean = _in_chunks()
    values = chunks.evaluate(model, source, measures=["clark", "kullback_leibler", "cosine", "kendall"])
    skill = chunks.skill(model, source, mean)
    P = model.predict(rows.X)
    parts = [slice(0, 20), slice(20, 60)]
    of_pairs = chunks.evaluate_pairs([(rows.D[part], P[part]) for part in parts])
    skill_of_pairs = chunks.skill_of_pairs([(rows.D[part], P[part], mean[None]) for part in parts])
    skills = [_attributes(each, "real", "low", "high") for each in (skill, skill_of_pairs)]
    return flat(values, *skills, of_pairs, *chunks.predict(model, chunks.ArrayRows(rows.X, chunk_rows=11)))


def _sources(class_name: str) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    rows, _, _, _ = _in_chunks()
    estimator = getattr(skldl, class_name)(**({"max_iter": 30} if class_name in ("SABFGS", "SAIIS") else {}))
    pieces = [(rows.X[first : first + 17], rows.D[first : first + 17]) for first in range(0, len(rows.D), 17)]
    iterable = estimator.fit(chunks.IterableRows(lambda: iter(pieces))).predict(rows.X_new)
    columns = {f"x{j}": column for j, column in enumerate(rows.X.T)} | {
        f"y{j}": column for j, column in enumerate(rows.D.T)
    }
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table(columns)
        parquet.write_table(table.slice(0, 25), Path(folder) / "a.parquet")
        parquet.write_table(table.slice(25), Path(folder) / "b.parquet", row_group_size=13)
        source = chunks.ParquetRows(folder, labels="y*", batch_rows=9)
        return flat(iterable, estimator.fit(source).predict(rows.X_new))


for _name in ("MeanDistribution", "SABFGS", "SABFGSCV", "SAIIS", "PTBayes"):
    FUNCTIONS[f"sources of rows {_name}"] = functools.partial(_sources, _name)


def _in_single_precision(class_name: str, in_chunks: bool) -> Any:
    rows = load("sparse")
    X, X_new, D = (np.asarray(array, dtype=np.float32) for array in (rows.X.toarray(), rows.X_new.toarray(), rows.D))
    source = (chunks.ArrayRows(X, D, chunk_rows=CHUNK_ROWS),) if in_chunks else (X, D)
    P = getattr(skldl, class_name)().fit(*source).predict(X_new)
    # Rounded: the last digits of single precision depend on the processor.
    return flat(P.dtype.itemsize, P.shape, np.round(P, 3).mean(axis=0).round(2))


for _name in ("MeanDistribution", "SABFGS", "SABFGSCV", "SAIIS", "PTBayes", "AAKNN"):
    FUNCTIONS[f"float32 {_name}"] = functools.partial(_in_single_precision, _name, False)
    if _name != "AAKNN":
        FUNCTIONS[f"float32 {_name} in chunks"] = functools.partial(_in_single_precision, _name, True)


# -- selection


@frozen
def _folds() -> Any:
    groups = np.arange(50) // 3
    seeds = [selection.derive_seed(0, "set", 3), selection.derive_seed(1)]
    shuffled = (
        selection.assign_folds(50, 4, random_state=0),
        selection.assign_folds(50, 4, random_state=0, groups=groups),
    )
    held = selection.hold_out(50, 0.2, random_state=0), selection.hold_out(50, 0.2, random_state=0, groups=groups)
    X, D = make_distributions(30)
    rounds = []
    for protocol in selection.PROTOCOLS:
        for each in selection.rounds_of(Dataset("toy", X, D), selection.Layout(protocol, folds=3, inner_folds=2)):
            rounds += [each.train, each.test, *(part for pair in each.tuning for part in pair)]
    return flat(np.array(seeds) % 2**32, selection.assign_folds(50, 4), *shuffled, *held, *rounds)


def _toy_study_parts() -> tuple[list[Dataset], list[Candidate]]:
    datasets = [Dataset(f"toy {seed}", *make_distributions(36, 3, 4, random_state=seed)) for seed in range(4)]
    candidates = [
        Candidate("SA-BFGS", "skldl:SABFGS", {"fit_intercept": True}, {"alpha": (1e-1, 1e-3)}, path="alpha"),
        Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (9, 3)}, path="n_neighbors"),
        Candidate("SA-IIS", "skldl:SAIIS", grid={"max_iter": (5, 20)}, path="max_iter"),
        Candidate("Mean", "skldl:MeanDistribution"),
    ]
    return datasets, candidates


@frozen
def _search_and_estimate() -> Any:
    datasets, candidates = _toy_study_parts()
    pairs = list(selection.pairs_of(selection.assign_folds(36, 3, random_state=0)))
    result = selection.search(datasets[0], candidates, pairs)
    best, place = result.best()
    estimate = selection.estimate_choice(datasets[0], result, result.trials[-1])
    values = [trials.values for trials in result.trials]
    return flat(*values, place, best.loss(), estimate.loss, estimate.reference_loss, estimate.skill)


@frozen
def _study_and_statistics() -> Any:
    datasets, candidates = _toy_study_parts()
    results = run_study(Study(datasets, candidates, folds=3))
    tests = compare(results, "kullback_leibler")
    names = ("average_ranks", "friedman", "nemenyi_difference", "dunn_difference", "nemenyi", "wilcoxon", "dunn")
    return flat(numbers_in(results.table("kullback_leibler").to_csv()), _attributes(tests, *names))


@frozen
def _paths() -> Any:
    rows = load("sparse")
    paths = {
        "SABFGS": ("alpha", (1e-1, 1e-3)),
        "SAIIS": ("max_iter", (20, 5)),
        "AAKNN": ("n_neighbors", (9, 3, 30)),
        "PTSVM": ("C", (0.1, 1.0)),
        "MeanDistribution": ("", ()),
    }
    numbers = []
    for class_name, (param, values) in paths.items():
        if param:
            model = getattr(skldl, class_name)()
            numbers += list(model.predict_path(rows.X, rows.D, rows.X_new, param=param, values=list(values)))
    return flat(*numbers)


@frozen
def _neighbours_with_ties() -> Any:
    """Rows on three levels: the neighbours at the last place are tied; batches of any size predict the same."""
    rows = load("levels")
    numbers = []
    for params in ({}, {"metric": "manhattan"}, {"algorithm": "brute"}, {"weights": "distance"}, {"metric": "cosine"}):
        model = skldl.AAKNN(7, **params).fit(rows.X[:400] + 1, rows.D[:400])
        numbers += [model.predict(rows.X_new[:60] + 1), *(model.predict(rows.X_new[[row]] + 1) for row in range(3))]
    return flat(*numbers)


# -- tables


def table() -> Any:
    """A table with every kind of column, missing cells and unusual values."""
    import pandas as pd

    generator = np.random.default_rng(9)
    n_rows = 80
    words = ("sun", "rain", "wind", "a cold day", "warm and bright", "not so bad", "very good")
    frame = pd.DataFrame(
        {
            "age": generator.normal(40, 12, n_rows).round(1),
            "amount": [f"{value:.2f}" for value in generator.lognormal(3, 1, n_rows)],
            "town": generator.choice(["Ulm", "Bonn", "Kiel", "Köln"], n_rows),
            "code": generator.choice(["007", "012", "101"], n_rows),
            "smoker": generator.choice(["yes", "no"], n_rows),
            "when": pd.date_range("2024-01-01", periods=n_rows, freq="31h").strftime("%Y-%m-%d %H:%M"),
            "postcode": generator.integers(1, 6, n_rows) * 1000,
            "prose": [" ".join(generator.choice(words, 3)) for _ in range(n_rows)],
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "town"] = None
    frame.loc[::13, "amount"] = ""
    return frame


@frozen
def _encoder() -> Any:
    frame = table()
    settings = {"text": ["prose"], "categories": ["postcode"], "dense": True}
    numbers = []
    for text_ngrams in ("words", "characters"):
        encoder = TableEncoder(**settings, text_ngrams=text_ngrams, max_text_features=30).fit(frame[:50])
        numbers.append(encoder.transform(frame))
    hashed = TableEncoder(**settings, hashed_text=16).fit(frame[:50])
    numbers.append(hashed.transform(frame))
    in_chunks = TableEncoder(**settings, hashed_text=16).fit_chunks(lambda: [frame[:20], frame[20:50]])
    return flat(*numbers, in_chunks.transform(frame))


@frozen
def _explanations() -> Any:
    from sklearn.pipeline import make_pipeline

    frame = table().drop(columns=["prose", "when"])
    _, D = make_distributions(len(frame), 3, 3, random_state=9)
    model = make_pipeline(TableEncoder(dense=True), _linear()).fit(frame, D)
    weights = feature_weights(model)
    effects = column_effects(model, frame, D, n_repeats=2, random_state=0)
    return flat(weights.to_numpy(), effects.to_pandas().select_dtypes("number").to_numpy())
