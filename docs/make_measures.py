"""Write ``measures.md`` from the measure objects: run ``python docs/make_measures.py`` after changing a measure."""

from pathlib import Path

from skldl.metrics import CHA_MEASURES, LATER_MEASURES, MEASURES, PAPER_MEASURES, VICISSITUDE_MEASURES, Measure
from skldl.metrics.selection import LIBRARIES, select_measures

TARGET = Path(__file__).with_name("measures.md")

INTRODUCTION = f"""\
# Measures between label distributions

<!-- Written by docs/make_measures.py from the objects in skldl.metrics. Do not edit by hand. -->

`skldl.metrics` has {len(MEASURES)} measures: the {len(CHA_MEASURES)} in the eight families of Cha (2007), the
{len(VICISSITUDE_MEASURES)} that Cha lists outside the families, and {len(LATER_MEASURES)} that were published later.
Each is an object: call it for the mean over rows, `.rowwise` for one value per row, `evaluate` for many at once,
`SCORERS[name]` for scikit-learn.

```python
from skldl.metrics import clark, earth_mover, evaluate

clark([[0.5, 0.5]], [[0.25, 0.75]])  # the mean over rows
clark.rowwise([[0.5, 0.5]], [[0.25, 0.75]])  # one value per row
evaluate([[0.5, 0.5]], [[0.25, 0.75]], measures=["clark", earth_mover.with_options(values=[1, 5])])
```

In the formulae $d_j$ is the true degree of label $j$, $\\hat d_j$ the predicted one and $c$ the number of labels;
↓ means lower is better, ↑ higher. No measure returns nan: 0/0 is 0, $0 \\ln 0$ is 0, and denominators and arguments of
logarithms that can be zero are replaced by at least `eps` ("floored"; machine epsilon by default, and with `eps=0` the
value is infinite).

## Which to use when

- **To compare with published results**: the six of the paper, which is what `evaluate` computes by default.
- **To report how good a model is**: `skill`, which is 1 for a perfect prediction and 0 for one that is no
  better than the reference; in addition `intersection`, the fraction of mass on the right labels.
- **To train, tune or select a model**: `kullback_leibler` or `squared_euclidean`, whose best prediction is the true
  mean distribution. Not `inner_product`, `argmax_accuracy` or the rank correlations, by which other predictions are
  better than the truth, or equally good.
- **If predictions contain zeros** (nearest neighbours, sparse votes): `jensen_shannon`, `hellinger` or `squared_chi2`.
  `kullback_leibler` then depends on `eps`; `clark` and `canberra` count 1 for each label that is 0 on one side only.
- **If labels are ordered** (ratings, ages): `earth_mover` or `cumulative_jensen_shannon`; `error_of_mean` for the mean.
- **If a decision depends on one label, or on a few**: `argmax_accuracy`, `error_probability`, `top_k`.
- **If only the order of the labels matters**: `spearman`, `kendall`.
- **Avoid as a mean over rows**: measures with range up to ∞ that divide by a degree, because single rows dominate them.
"""


def render() -> str:
    """The whole page."""
    families: dict[str, list[Measure]] = {}
    for measure in MEASURES.values():
        families.setdefault(measure.family, []).append(measure)
    parts = [INTRODUCTION, *(_section(family, members) for family, members in families.items()), _choice()]
    return "\n".join(parts)


def _section(family: str, members: list[Measure]) -> str:
    heading = {"vicissitude": "Vicissitude (outside the families)"}.get(family, family[0].upper() + family[1:])
    rows = "\n".join(_row(measure) for measure in members)
    return f"## {heading}\n\n| name | formula | | range | zeros and ties | when |\n|---|---|---|---|---|---|\n{rows}\n"


def _row(measure: Measure) -> str:
    formula = measure.formula.replace("|", r"\vert ")  # a bar would end the cell
    options = ", ".join(f"`{name}={value}`" for name, value in measure.options.items())
    name = (
        f"`{measure.name}`" + ("\\*" if measure.name in PAPER_MEASURES else "") + (f" ({options})" if options else "")
    )
    return f"| {name} | ${formula}$ | {measure.arrow} | {measure.range} | {measure.zeros} | {measure.use} |"


def _choice() -> str:
    selection = select_measures()
    other = select_measures(dissimilarity="one_minus_r").judge()["clusters"]
    judged = selection.judge()
    kept = [principle for principle, violations in judged.items() if not violations]
    left = "\n".join(
        f"- `{name}` is not chosen: {selection.reasons[name]}."
        for name in PAPER_MEASURES
        if name not in selection.chosen
    )
    libraries = "\n".join(
        f"- {library}: {', '.join(f'`{name}`' for name in names)}" for library, names in LIBRARIES.items()
    )
    return f"""\
## How the six were chosen

\\* marks the six of the paper. They were chosen from a dendrogram by four principles: clusters further apart than 0.1,
one measure per family, stable near zero, widely used. `skldl measures select` repeats that choice, on random
distributions by default or on your own predictions, and draws the dendrogram;
`skldl.metrics.selection.select_measures` documents what the paper does not specify and what was assumed. With the
defaults it chooses
{_names(selection.chosen)}.

The paper does not specify the distance between two measures with correlation r. The default here, the sine
$\\sqrt{{1 - r^2}}$, **was chosen because the paper's six then are in six clusters**; this does not confirm the choice
independently. With $1 - |r|$ they are not ({other}).

The paper's six satisfy these principles on random distributions: {", ".join(kept)}. On predictions of real data they
are often in fewer clusters ([the reproduction](reproduction.md#typical-examples-and-the-tree-of-measures)). The last
principle is wide use:

{left}

Usage is the number of general-purpose libraries that have a measure, which is our assumption:

{libraries}
"""


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def outputs() -> dict[Path, str]:
    """The current text of each file, by its path."""
    return {TARGET: render()}


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET}")
