"""The pages of the API reference: one page for each module, one for each public class and function.

`MODULES` says which modules are public and what each is for. The names follow from ``__all__`` (or, where a module has
none, from what it defines), so that a new name has a page at once. `docs/conf.py` writes the pages before each build
of the site, and ``tests/docs/test_reference.py`` checks that nothing is missing.
"""

import importlib
import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import skldl
from skldl.metrics import Measure

# Where a name is exported twice, the page stands in the module that comes first here.
MODULES = {
    "skldl": "Estimators, and what every user needs",
    "skldl.distributions": "From labels, votes, counts, scores and rankings to distributions, and back",
    "skldl.data": "Datasets: bundled, fetched, read from files and written",
    "skldl.metrics": "Measures between distributions",
    "skldl.metrics.selection": "How the six measures of the paper were chosen",
    "skldl.selection": "Candidates, folds, protocols and the search",
    "skldl.uncertainty": "Noise floor, regions, spread and calibration",
    "skldl.annotators": "The quality of raters",
    "skldl.enhancement": "From logical labels to degrees",
    "skldl.incomplete": "Learning from missing degrees",
    "skldl.tabular": "Models of tables: encoder, training, prediction, explanation",
    "skldl.chunks": "Rows that are read in chunks: files, Dask, any iterable",
    "skldl.experiments": "Studies and their records",
    "skldl.experiments.statistics": "Statistical tests between algorithms",
    "skldl.plots": "Figures",
    "skldl.report": "The report of a study",
    "skldl.export": "ONNX graphs and model cards",
    "skldl.serve": "Predictions over HTTP",
    "skldl.persistence": "Models in files",
    "skldl.simplex": "Arithmetic on rows that sum to one",
    "skldl.names": "Algorithms by name",
    "skldl.testing": "Checks for an estimator of your own",
    "skldl.base": "The base classes",
    "skldl.exceptions": "Errors and warnings",
    "skldl.maxent": "Maximum entropy models",
    "skldl.losses": "Linear models with any smooth loss",
    "skldl.correlation": "Models that use the correlation of the labels",
    "skldl.decision": "Models for decisions",
    "skldl.neighbors": "Nearest neighbours",
    "skldl.kernel": "Kernel methods",
    "skldl.trees": "Trees, forests and boosting",
    "skldl.neural": "Networks",
    "skldl.transformation": "Problem transformation",
    "skldl.adaptation": "Adapted regressors",
    "skldl.ensemble": "Pools of models",
    "skldl.classification": "Label distribution learners as classifiers",
    "skldl.baseline": "The baseline",
}
NOT_DOCUMENTED = {
    "skldl.__main__": "runs the command line",
    "skldl.cli": "the command line, which has a page of its own",
    "skldl.utils": "code that every layer uses; not part of the public interface",
}
CONSTANTS = {
    "skldl.ESTIMATORS": "Names of all estimators of this package.",
    "skldl.data.CATALOGUE": "The datasets that can be fetched by name, each a `CatalogueEntry`.",
    "skldl.data.KINDS": "What the label columns of a table can hold: the values of ``kind=`` and ``--kind``.",
    "skldl.metrics.MEASURES": "All measures, by name.",
    "skldl.metrics.PAPER_MEASURES": "The six measures of Geng (2016), by name.",
    "skldl.metrics.CHA_MEASURES": "The 45 measures in the eight families of Cha (2007), by name.",
    "skldl.metrics.VICISSITUDE_MEASURES": "The six measures that Cha (2007) lists outside the families, by name.",
    "skldl.metrics.LATER_MEASURES": "The measures that are not in Cha (2007), by name.",
    "skldl.metrics.SCORERS": "A scikit-learn scorer for each measure, with the sign that ``GridSearchCV`` expects.",
    "skldl.metrics.selection.LIBRARIES": "The software whose measures the survey of use counts.",
    "skldl.metrics.selection.USAGE": "How often each measure is used, for the criterion of use.",
    "skldl.selection.BASELINE": "The candidate that predicts the mean distribution.",
    "skldl.selection.PROTOCOLS": "The protocols of model selection, by name.",
    "skldl.experiments.PROTOCOLS": "The protocols that a study file can name.",
    "skldl.tabular.AUTO": "The candidates that ``skldl fit`` compares when no model is named.",
    "skldl.names.ALGORITHMS": "The table of registration: every algorithm with module, class, title and grid.",
    "skldl.names.CAPABILITIES": "What estimators can do, and the class attributes that say so.",
    "skldl.testing.CHECKS": "The checks that `check_estimator` runs in addition to those of scikit-learn, by name.",
    "skldl.testing.EXPECTED_FAILED_CHECKS": "Checks of scikit-learn that cannot pass by construction, with the reason.",
    "skldl.losses.LOSSES": "The losses that `SmoothLossLDL` knows by name.",
    "skldl.losses.COMBINATIONS": "Named combinations of losses.",
}
DESCRIPTORS = (property, cached_property, classmethod, staticmethod)
BASE_NOTE = """
A fitted model also has the attributes of :py:obj:`skldl.BaseLDL`: ``n_features_in_``, ``feature_names_in_``,
``n_labels_`` and ``label_names_``.
"""
FOLDER = "api"


@dataclass(frozen=True)
class Entry:
    """A public name: its module, what it is, and whether its page stands under another name."""

    module: str
    name: str
    value: Any
    home: str  # the full name under which it has its page

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def kind(self) -> str:
        if inspect.isclass(self.value):
            return "class"
        if isinstance(self.value, Measure):
            return "measure"
        return "function" if inspect.isroutine(self.value) else "data"

    @property
    def is_error(self) -> bool:
        return self.kind == "class" and issubclass(self.value, Exception)

    @property
    def has_page(self) -> bool:
        """Whether the name has a page of its own; errors, constants and measures are on the page of their module."""
        return self.home == self.full_name and self.kind in ("class", "function") and not self.is_error


def public_names(module: str) -> list[str]:
    """The public names of a module: ``__all__``, or what it defines itself."""
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None)
    if names is None:
        names = [name for name, value in vars(loaded).items() if getattr(value, "__module__", "") == module]
    return [name for name in names if not name.startswith("_") and not inspect.ismodule(getattr(loaded, name, None))]


def entries() -> list[Entry]:
    """Every public name of the package, in the order of `MODULES`."""
    homes: dict[int, str] = {}
    found = []
    for module in MODULES:
        for name in public_names(module):
            value = getattr(importlib.import_module(module), name)
            own = f"{module}.{name}"
            home = homes.setdefault(id(value), own) if callable(value) else own
            found.append(Entry(module, name, value, home))
    return found


def pages() -> dict[str, str]:
    """The text of every page of the reference, by its path below `FOLDER`."""
    everything = entries()
    texts = {"index.rst": _index()}
    for module in MODULES:
        own = [entry for entry in everything if entry.module == module]
        texts[f"{module}.rst"] = _module_page(module, own)
    return texts | pages_of_objects()


def pages_of_objects() -> dict[str, str]:
    """The pages of single classes and functions."""
    return {f"generated/{entry.full_name}.rst": _object_page(entry) for entry in entries() if entry.has_page}


def write_pages(docs: Path) -> None:
    """Write the pages that changed, and remove those of names that are gone."""
    folder = docs / FOLDER
    texts = pages()
    for path in folder.rglob("*.rst"):
        if path.relative_to(folder).as_posix() not in {*texts, "command-line.rst"}:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def _index() -> str:
    rows = "".join(f"   * - :doc:`{module} <{module}>`\n     - {purpose}\n" for module, purpose in MODULES.items())
    tree = "".join(f"   {module}\n" for module in MODULES)
    return (
        f"{_title('API reference')}\n"
        "Every public name of the package. Estimators can be imported from ``skldl`` itself; what is not listed here "
        "is private and may change without notice.\n\n"
        ".. list-table::\n   :widths: 30 70\n\n"
        f"{rows}   * - :doc:`Command line <command-line>`\n     - What ``skldl COMMAND --help`` prints\n\n"
        f".. toctree::\n   :hidden:\n\n{tree}   command-line\n"
    )


def _module_page(module: str, own: list[Entry]) -> str:
    loaded = importlib.import_module(module)
    parts = [f"{_title(module)}\n.. py:module:: {module}\n\n{inspect.getdoc(loaded)}\n"]
    if module == "skldl":
        estimators = [entry for entry in own if entry.name in skldl.ESTIMATORS]
        parts.append(_table("Estimators", estimators))
        own = [entry for entry in own if entry not in estimators]
    parts.append(_table("Classes", [entry for entry in own if entry.kind == "class" and not entry.is_error]))
    parts.append(_table("Functions", [entry for entry in own if entry.kind == "function"]))
    constants = [entry for entry in own if entry.kind == "data"]
    if constants:
        parts.append(_title("Constants", "-") + "".join(_constant(entry) for entry in constants))
    measures = [entry for entry in own if entry.kind == "measure"]
    if measures:
        parts.append(_title("Measures", "-") + "".join(_measure(entry) for entry in measures))
    errors = [entry for entry in own if entry.is_error]
    if errors:
        parts.append(_title("Errors and warnings", "-") + "".join(_error(entry) for entry in errors))
    pages_here = [entry for entry in own if entry.has_page]
    if module == "skldl":
        pages_here = [*estimators, *pages_here]
    if pages_here:
        tree = "".join(f"   generated/{entry.full_name}\n" for entry in pages_here)
        parts.append(f".. toctree::\n   :hidden:\n\n{tree}")
    return "\n".join(part for part in parts if part)


def _table(heading: str, rows: list[Entry]) -> str:
    if not rows:
        return ""
    lines = "".join(f"   * - :py:obj:`{entry.name} <{entry.home}>`\n     - {_summary(entry.value)}\n" for entry in rows)
    return f"{_title(heading, '-')}\n.. list-table::\n   :widths: 30 70\n\n{lines}"


def _summary(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    return " ".join(re.sub(r" ?\[\d+\]_", "", text.split("\n\n")[0]).split())


def _constant(entry: Entry) -> str:
    return f"\n.. py:data:: {entry.name}\n\n   {CONSTANTS.get(entry.full_name, '')}\n"


def _error(entry: Entry) -> str:
    bases = ", ".join(f":py:obj:`{base.__name__}`" for base in entry.value.__bases__)
    return f"\n.. py:exception:: {entry.name}\n\n   {_summary(entry.value)} Derives from {bases}.\n"


def _measure(entry: Entry) -> str:
    measure = entry.value
    direction = "higher is better" if measure.higher_is_better else "lower is better"
    options = "".join(f" Option ``{name}``, by default {value!r}." for name, value in measure.options.items())
    return (
        f"\n.. py:data:: {entry.name}\n\n   **{measure.title}** ({measure.family}; {direction}).\n\n"
        f"   .. math:: {measure.formula}\n\n   {measure.use} Range: {measure.range}. "
        f"Zeros and ties: {measure.zeros}.{options}\n"
    )


def _object_page(entry: Entry) -> str:
    text = f"{_title(entry.full_name)}\n.. py:currentmodule:: {entry.module}\n\n"
    if entry.kind == "function":
        return f"{text}.. autofunction:: {entry.full_name}\n"
    own = ", ".join(members(entry.value))
    text += f".. autoclass:: {entry.full_name}\n" + (f"   :members: {own}\n" if own else "")
    if issubclass(entry.value, skldl.BaseLDL) and entry.value is not skldl.BaseLDL:
        text += BASE_NOTE
    return text


def members(value: type) -> list[str]:
    """The public methods and properties that this package defines, inherited ones included.

    Members of scikit-learn's base classes, such as ``get_params``, are documented there.
    """
    found = {}
    for base in reversed([base for base in value.__mro__ if base.__module__.startswith("skldl")]):
        for name, member in vars(base).items():
            if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, DESCRIPTORS)):
                found[name] = member
    requests = [name for name in found if name.startswith("set_") and name.endswith("_request")]
    return sorted(name for name in found if name not in requests)
