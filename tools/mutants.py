"""Mutation testing: put small faults into a module, one at a time, and run its tests.

    python tools/mutants.py src/skldl/metrics/_noise_floor.py tests/metrics/test_noise_floor.py tests/metrics
    python tools/mutants.py --count 20 --seed 1 --list src/skldl/base.py

The first form draws ten faults in the module, puts each into a copy of the repository, runs the tests that are named
there, in this order, until one fails, and prints for each fault "killed", "survived" or "timeout". It goes through the
kinds of fault in turn: another operator, comparison or number, a condition negated, a statement left out. Nothing
changes in docstrings, messages, type hints, decorators and names; a module with the fault can be imported. ``--list``
shows the faults and runs nothing. ``--root`` names another checkout, such as one of an earlier version; its own tests
run there, with the Python that runs this script. The same seed draws the same faults in the same text of a module.

A fault that survives need not be a gap in the tests: some faults change no observable behaviour.
"""

import argparse
import ast
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
    ast.Pow: ("**", "*"),
    ast.MatMult: ("@", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
NOT_RUN = ("__all__", "TYPE_CHECKING")
SETS_PARAMETERS = ("warn",)
"""Calls whose arguments are messages."""


class Fault(NamedTuple):
    """A piece of the text of a module, and what stands in its place."""

    kind: str
    start: int
    end: int
    text: str


class _Finder(ast.NodeVisitor):
    """Collect the faults that a module can have."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.faults: list[Fault] = []
        # Columns of the parser count bytes of UTF-8.
        self.lines = [line.encode() for line in source.splitlines(keepends=True)]
        self.line_starts = [0]
        for line in self.lines:
            self.line_starts.append(self.line_starts[-1] + len(line.decode()))

    def _offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + len(self.lines[line - 1][:column].decode())

    def _start(self, node: ast.AST) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _end(self, node: ast.AST) -> int:
        return self._offset(node.end_lineno, node.end_col_offset)

    def _replace(self, kind: str, node: ast.AST, text: str) -> None:
        self.faults.append(Fault(kind, self._start(node), self._end(node), text))

    def _replace_between(self, kind: str, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        start, end = self._end(left), self._start(right)
        words = r"\b" if old.isalpha() else ""
        pattern = words + re.escape(old).replace(r"\ ", r"\s+") + words
        if found := re.search(pattern, self.source[start:end]):
            self.faults.append(Fault(kind, start + found.start(), start + found.end(), new))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in OPERATORS and not _is_text(node.left) and not _is_text(node.right):
            self._replace_between("operator", node.left, node.right, *OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            self._replace("operator", node, f"({self.source[self._start(node.operand) : self._end(node.operand)]})")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATORS:
            old, new = OPERATORS[type(node.op)]
            self._replace_between("operator", node.target, node.value, old + "=", new + "=")
        self._replace("statement", node, "pass")
        self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._replace_between("comparison", left, right, *COMPARISONS[type(operator)])
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self._replace_between("condition", node.values[0], node.values[1], *words)
        self.generic_visit(node)

    def _visit_condition(self, node: ast.If | ast.While | ast.IfExp) -> None:
        if isinstance(node.test, ast.Name) and node.test.id in NOT_RUN:
            return
        text = self.source[self._start(node.test) : self._end(node.test)]
        if "\n" not in text:
            self._replace("condition", node.test, f"(not ({text}))")
        self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = _visit_condition

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace("number", node, str(not value))
        elif isinstance(value, int):
            self._replace("number", node, str(value + 1 if value < 10 else 2 * value))
        elif isinstance(value, float):
            self._replace("number", node, repr(2 * value if value else 1.0))

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not _is_warning(node.value):
            self._replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id in NOT_RUN for target in node.targets):
            return
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._replace("statement", node, "pass")
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace("statement", node, "pass")  # and nothing inside: messages

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace("statement", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace("statement", node, "pass")

    def visit_Call(self, node: ast.Call) -> None:
        if not _is_warning(node):
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text: nothing in it is changed."""

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for value in (*node.args.defaults, *(value for value in node.args.kw_defaults if value is not None)):
            self.visit(value)
        for statement in node.body:
            self.visit(statement)

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_warning(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in SETS_PARAMETERS


def find_faults(source: str) -> list[Fault]:
    """All faults that can be put into the text of a module; each changes its syntax tree."""
    finder = _Finder(source)
    tree = ast.parse(source)
    finder.visit(tree)
    before = ast.dump(tree)
    faults = []
    for fault in finder.faults:
        try:
            changed = ast.dump(ast.parse(apply(source, fault)))
        except SyntaxError:
            continue
        if changed != before:
            faults.append(fault)
    return faults


def apply(source: str, fault: Fault) -> str:
    """The text of the module with the fault."""
    return source[: fault.start] + fault.text + source[fault.end :]


def in_random_order(faults: list[Fault], generator: random.Random) -> Iterator[Fault]:
    """The faults, one of each kind in turn."""
    by_kind = defaultdict(list)
    for fault in faults:
        by_kind[fault.kind].append(fault)
    for kind in sorted(by_kind):
        generator.shuffle(by_kind[kind])
    while any(by_kind.values()):
        for kind in sorted(by_kind):
            if by_kind[kind]:
                yield by_kind[kind].pop()


def describe(source: str, fault: Fault) -> str:
    """Place, kind and changed line, in one line."""
    number = source.count("\n", 0, fault.start) + 1
    old = " ".join(source.splitlines()[number - 1].split())
    changed = apply(source, fault)
    new = " ".join(changed.splitlines()[number - 1].split())
    return f"line {number}, {fault.kind}: {old}  ->  {new}"


def run(command: list[str], copy: Path, limit: int) -> tuple[str, float]:
    """Run a command in the copy for at most ``limit`` seconds of CPU time; how it ended, and seconds."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    start = time.monotonic()
    try:
        status = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=10 * limit,  # of waiting time: the machine may be busy, and a fault may wait forever
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
        ).returncode
    except subprocess.TimeoutExpired:
        status = -1
    seconds = time.monotonic() - start
    return ("passed" if status == 0 else "timeout" if status < 0 else "failed"), seconds


def main() -> int:
    """Draw, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", help="file of the module, from the root of the repository")
    parser.add_argument("tests", nargs="*", help="files or folders of tests, the most likely to notice first")
    parser.add_argument("--count", type=int, default=10, help="number of faults (10)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=90, help="seconds of CPU time for the tests of one fault (90)")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; by default that of this script")
    parser.add_argument("--list", action="store_true", help="show the faults and run nothing")
    options = parser.parse_args()
    source = (options.root / options.module).read_text()
    faults = in_random_order(find_faults(source), random.Random(options.seed))
    if options.list:
        for _, fault in zip(range(options.count), faults, strict=False):
            print(describe(source, fault))
        return 0
    if not options.tests:
        parser.error("name the tests to run")
    name = ".".join(Path(options.module).with_suffix("").parts[1:]).removesuffix(".__init__")
    tests = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:randomly", *options.tests]
    outcomes: dict[str, int] = defaultdict(int)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(options.root, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".cache", "__pycache__"))
        result, seconds = run(tests, copy, options.limit)
        if result != "passed":
            print(f"{options.module}: without a fault the tests end as: {result}, after {seconds:.0f} s")
            return 1
        print(f"{options.module}: the tests pass without a fault in {seconds:.0f} s", flush=True)
        for fault in faults:
            if sum(outcomes.values()) == options.count:
                break
            (copy / options.module).write_text(apply(source, fault))
            if run([sys.executable, "-c", f"import {name}"], copy, options.limit)[0] != "passed":
                continue
            result, seconds = run(tests, copy, options.limit)
            outcome = {"passed": "survived", "failed": "killed"}.get(result, result)
            outcomes[outcome] += 1
            print(f"{outcome:8} {seconds:4.0f} s  {describe(source, fault)}", flush=True)
    print(f"{options.module}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
