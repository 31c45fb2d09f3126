"""Measures as C code: the arithmetic of a `Pair`, recorded instead of computed, and written as one function of a row.

A `Symbol` stands for an array of the pair. Arithmetic on symbols and functions of `SymbolicNamespace` make new symbols;
`c_function` writes all that some results need as a C function that reads one row of p and q. So a measure is
written once, in its own module, and a device can still compute many of them in one pass over the memory.

A symbol either has one value for each label of a row or one value for the row. Sums and maxima over labels turn the
first into the second. Where a label's value depends on a sum over labels, a further loop over the labels follows.
"""

from dataclasses import dataclass, field
from typing import Any

QUOTIENTS = {"{0} / {1}": "QUOTIENT({0}, {1})", "{1} / {0}": "QUOTIENT({1}, {0})"}
"""Divisions of numbers that have the type of the tables: a device has a quick one for single precision."""


class NotTraceable(Exception):
    """A measure uses something that has no symbol, such as sorting."""


@dataclass(eq=False)
class Symbol:
    """A value of the recorded arithmetic.

    Attributes
    ----------
    recording : Recording
        What it is part of.
    code : str
        C expression with places ``{0}``, ``{1}`` for the operands.
    operands : tuple
        Symbols and numbers.
    kind : {"T", "double", "bool"}
        C type; T is the type of the arrays.
    per_label : bool
        Whether it has one value for each label.
    reduction : {"", "sum", "max"}
        Whether it is a sum or maximum over labels of its operand.
    """

    recording: "Recording"
    code: str
    operands: tuple[Any, ...]
    kind: str
    per_label: bool
    reduction: str = ""
    number: int = field(init=False)
    stage: int = field(init=False)

    def __post_init__(self) -> None:
        self.number = len(self.recording.symbols)
        stages = [operand.stage for operand in self.operands if isinstance(operand, Symbol)]
        self.stage = max(stages, default=0) + bool(self.reduction)
        self.recording.symbols.append(self)

    @property
    def name(self) -> str:
        return f"v{self.number}"

    @property
    def shape(self) -> tuple[int, int]:
        return self.recording.n_labels, 1

    @property
    def device(self) -> Any:
        raise NotTraceable("a further array")

    def __array_namespace__(self, api_version: str | None = None) -> "SymbolicNamespace":
        return self.recording.namespace

    def _with(self, code: str, other: Any, kind: str = "") -> "Symbol":
        return self.recording.make(code, self, other, kind=kind)

    def __add__(self, other: Any) -> "Symbol":
        return self._with("{0} + {1}", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Symbol":
        return self._with("{0} - {1}", other)

    def __rsub__(self, other: Any) -> "Symbol":
        return self._with("{1} - {0}", other)

    def __mul__(self, other: Any) -> "Symbol":
        return self._with("{0} * {1}", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Symbol":
        return self._with("{0} / {1}", other)

    def __rtruediv__(self, other: Any) -> "Symbol":
        return self._with("{1} / {0}", other)

    def __pow__(self, other: Any) -> "Symbol":
        return self._with("pow({0}, {1})", other)

    def __neg__(self) -> "Symbol":
        return self.recording.make("-{0}", self)

    def __eq__(self, other: object) -> "Symbol":  # type: ignore[override]  # as arrays do
        return self._with("{0} == {1}", other, kind="bool")

    def __ne__(self, other: object) -> "Symbol":  # type: ignore[override]  # as arrays do
        return self._with("{0} != {1}", other, kind="bool")

    def __lt__(self, other: Any) -> "Symbol":
        return self._with("{0} < {1}", other, kind="bool")

    def __gt__(self, other: Any) -> "Symbol":
        return self._with("{0} > {1}", other, kind="bool")

    def __le__(self, other: Any) -> "Symbol":
        return self._with("{0} <= {1}", other, kind="bool")

    def __ge__(self, other: Any) -> "Symbol":
        return self._with("{0} >= {1}", other, kind="bool")

    def __and__(self, other: Any) -> "Symbol":
        return self._with("{0} && {1}", other, kind="bool")

    def __or__(self, other: Any) -> "Symbol":
        return self._with("{0} || {1}", other, kind="bool")

    def __invert__(self) -> "Symbol":
        return self.recording.make("!{0}", self, kind="bool")

    def __bool__(self) -> bool:
        raise NotTraceable("a decision on a value")

    def __getitem__(self, key: Any) -> "Symbol":
        raise NotTraceable("indexing")

    __hash__ = object.__hash__


@dataclass
class Recording:
    """All symbols in the order in which they were made, for rows of so many labels."""

    n_labels: int
    symbols: list[Symbol] = field(default_factory=list)
    namespace: "SymbolicNamespace" = field(init=False)

    def __post_init__(self) -> None:
        self.namespace = SymbolicNamespace(self)

    def argument(self, array: str) -> Symbol:
        """Symbol of an array that the C function reads."""
        return Symbol(self, f"{array}[j]", (), "T", True)

    def make(self, code: str, *operands: Any, kind: str = "") -> Symbol:
        """Symbol of an operation; its type is the widest of the operands."""
        symbols = [operand for operand in operands if isinstance(operand, Symbol)]
        if len(symbols) + sum(isinstance(operand, int | float) for operand in operands) < len(operands):
            raise NotTraceable("an operand that is no number")
        if not kind:
            kinds = {symbol.kind for symbol in symbols}
            kind = "double" if "double" in kinds else "T" if "T" in kinds else "bool"
        return Symbol(self, code, operands, kind, any(symbol.per_label for symbol in symbols))


class SymbolicNamespace:
    """The functions of the array API that measures use."""

    __name__ = "symbols"
    float64 = "double"

    def __init__(self, recording: Recording) -> None:
        self._make = recording.make
        self._recording = recording

    def __getattr__(self, name: str) -> Any:
        raise NotTraceable(name)

    def abs(self, x: Symbol) -> Symbol:
        return self._make("fabs({0})", x)

    def sqrt(self, x: Symbol) -> Symbol:
        return self._make("sqrt({0})", x)

    def log(self, x: Symbol) -> Symbol:
        return self._make("log({0})", x)

    def log1p(self, x: Symbol) -> Symbol:
        return self._make("log1p({0})", x)

    def isinf(self, x: Symbol) -> Symbol:
        return self._make("isinf({0})", x, kind="bool")

    def minimum(self, x: Symbol, y: Symbol) -> Symbol:
        return self._make("{0} < {1} ? {0} : {1}", x, y)

    def maximum(self, x: Symbol, y: Symbol) -> Symbol:
        return self._make("{0} > {1} ? {0} : {1}", x, y)

    def clip(self, x: Symbol, low: float, high: float | None = None) -> Symbol:
        floored = self._make("{0} > {1} ? {0} : {1}", x, low)
        return floored if high is None else self._make("{0} < {1} ? {0} : {1}", floored, high)

    def where(self, condition: Symbol, x: Any, y: Any) -> Symbol:
        kinds = [part.kind for part in (x, y) if isinstance(part, Symbol)]
        return self._make("{0} ? {1} : {2}", condition, x, y, kind="double" if "double" in kinds else "T")

    def astype(self, x: Symbol, kind: str, copy: bool = True) -> Symbol:
        return x if x.kind == kind else self._make("{0}", x, kind=kind)

    def sum(self, x: Symbol, axis: int | None = None, dtype: str = "double") -> Symbol:
        return self._reduce(x, axis, "sum", dtype)

    def max(self, x: Symbol, axis: int | None = None) -> Symbol:
        return self._reduce(x, axis, "max", x.kind)

    def _reduce(self, x: Symbol, axis: int | None, reduction: str, kind: str) -> Symbol:
        if axis != 0 or not x.per_label:
            raise NotTraceable("a sum that is not over labels")
        return Symbol(self._recording, "{0}", (x,), kind, False, reduction)


def c_function(recording: Recording, results: list[Symbol]) -> str:
    """Write a C function ``row_values(p, q, out)`` that computes the results of one row.

    Macros that it needs: T, the type of the tables; SUM, the type in which labels are added up; LABELS; QUOTIENT(a, b)
    of two T; DEVICE, what stands before a function; UNROLL, what stands before a loop.
    """
    needed = _needed(results)
    lines = []
    for stage in range(max((symbol.stage for symbol in results), default=0) + 1):
        lines += [
            f"  const {symbol.kind} {symbol.name} = {_expression(symbol)};"
            for symbol in needed
            if not symbol.per_label and not symbol.reduction and symbol.stage == stage
        ]
        reductions = [symbol for symbol in needed if symbol.reduction and symbol.stage == stage + 1]
        if reductions:
            lines += _loop(reductions)
    lines += [f"  out[{place}] = (double){symbol.name};" for place, symbol in enumerate(results)]
    return "\n".join(["DEVICE void row_values(const T* p, const T* q, double* out)", "{", *lines, "}"])


def _loop(reductions: list[Symbol]) -> list[str]:
    start = {"sum": "0", "max": "-INFINITY"}
    types = [symbol.kind if symbol.reduction == "max" else "SUM" for symbol in reductions]
    lines = [f"  {t} {s.name}_ = {start[s.reduction]};" for s, t in zip(reductions, types, strict=True)]
    lines += ["  UNROLL", "  for (int j = 0; j < LABELS; ++j) {"]
    for symbol in _needed([symbol.operands[0] for symbol in reductions]):
        if symbol.per_label:
            lines.append(f"    const {symbol.kind} {symbol.name} = {_expression(symbol)};")
    for symbol in reductions:
        value, total = symbol.operands[0].name, f"{symbol.name}_"
        if symbol.reduction == "sum":
            lines.append(f"    {total} += {value};")
        else:
            lines.append(f"    {total} = {value} > {total} ? {value} : {total};")
    lines.append("  }")
    return lines + [f"  const {symbol.kind} {symbol.name} = {symbol.name}_;" for symbol in reductions]


def _needed(results: list[Symbol]) -> list[Symbol]:
    """All symbols that some results rest on, in the order in which they were made; beyond a sum nothing is needed."""
    found: dict[int, Symbol] = {}
    open_symbols = list(results)
    while open_symbols:
        symbol = open_symbols.pop()
        if symbol.number not in found:
            found[symbol.number] = symbol
            open_symbols += [operand for operand in symbol.operands if isinstance(operand, Symbol)]
    return [found[number] for number in sorted(found)]


def _expression(symbol: Symbol) -> str:
    """C expression of a symbol; numbers take the type of the other operands."""
    kinds = {operand.kind for operand in symbol.operands if isinstance(operand, Symbol)} - {"bool"}
    kind = "double" if "double" in kinds or not kinds else "T"
    if symbol.kind == "double" and "T" not in kinds:
        kind = "double"

    def text(operand: Any) -> str:
        return operand.name if isinstance(operand, Symbol) else f"(({kind}){float(operand)!r})"

    code = symbol.code
    if symbol.kind == "T" and kind == "T" and code in QUOTIENTS:
        code = QUOTIENTS[code]
    return code.format(*[text(operand) for operand in symbol.operands])
