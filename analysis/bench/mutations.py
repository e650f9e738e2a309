"""Whether the tests notice when a rule of the verdict is broken: each condition dropped, each comparison turned round.

    python analysis/bench/mutations.py [MODULE ...] [--tests FILE ...] [--part I/N] [--list]

Mutates the modules of the verdict's rules (or others: `statistics.laws`) in memory, one place at a time, and runs the
tests that pass through the line. Prints each change that no test noticed, and how many some did. `--list`: only what
would be changed. `--part`: only every N-th change, from the I-th.

An `if`, or the filter of a comprehension, no longer applies; of `a and b`, or `a or b`, each part is left out once. A
comparison that none of these drops becomes its opposite (< becomes >=). Conditions in the text of a sentence are left
alone."""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

import ntier_analysis.demo  # what the tests import is imported once, before the processes divide
import ntier_analysis.verdict.store  # noqa: F401
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "ntier_analysis"
FOLDER = ROOT / "analysis/src" / PACKAGE
VERDICT = "verdict"
RULES = ("agreement", "arrivals", "base", "causes", "conditions", "context", "coverage", "disks", "doubts", "exact",
         "full_together", "load", "lowest", "outside", "places", "plateau", "reasoning", "relief", "replicas",
         "saturation", "standstill", "stops", "sweep", "tables", "trial", "visits", "without")  # fmt: skip
"""Modules of ntier_analysis.verdict."""
TESTS = ("test_saturation.py", "test_turns.py", "test_rules.py", "test_principles.py", "test_symptoms.py",
         "test_load_models.py", "test_stops.py", "test_replicas.py", "test_second_reading.py", "test_doubts.py",
         "test_foreign_data.py", "test_threads.py", "test_plateau.py", "test_added_nodes.py")  # fmt: skip
"""Of analysis/tests/verdict: those that take seconds."""
SAYS = {"_law", "_said", "_conflicts", "_imbalances", "_use_text", "_beside_stops", "_agreement", "_disagreement",
        "_holds", "_who", "_percent", "law", "named", "_loads"}  # fmt: skip
"""Functions that only say in words what was found."""
OPPOSITE = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
            ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}  # fmt: skip
LONGEST_S = 300
"""CPU time of the tests of one change: one that never ends was noticed, too."""


@dataclass(frozen=True)
class Mutation:
    """One change: the `part`-th of what can be changed at the `place`-th node of the module's tree. `lines`: of the
    statement around it, first and last."""

    module: str
    lines: tuple[int, int]
    place: int
    part: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.lines[0]} {self.text}"


def nodes(tree: ast.Module) -> Iterator[tuple[int, ast.AST]]:
    """Nodes with their number; without what only makes sentences, and comparisons that are dropped as a whole."""
    every = list(ast.walk(tree))
    said = [n for n in every if isinstance(n, ast.JoinedStr) or (isinstance(n, ast.FunctionDef) and n.name in SAYS)]
    left_out = {id(inner) for node in said for inner in ast.walk(node)}
    left_out |= {id(test) for node in every for test in dropped(node) if isinstance(test, ast.Compare)}
    return ((i, node) for i, node in enumerate(every) if id(node) not in left_out)


def dropped(node: ast.AST) -> list[ast.expr]:
    """Conditions that a change at this node drops."""
    if isinstance(node, ast.If):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return [test for test in node.ifs if not isinstance(test, ast.BoolOp)]
    return node.values if isinstance(node, ast.BoolOp) else []


def mutations(module: str) -> list[Mutation]:
    tree, found = parsed(module), []
    around = statements(tree)
    for place, node in nodes(tree):
        for part, text in enumerate(choices(node)):
            if text:
                found.append(Mutation(module, around[id(node)], place, part, text))
    return sorted(found, key=lambda m: m.lines)


def statements(tree: ast.Module) -> dict[int, tuple[int, int]]:
    """Node (its id) -> first and last line of the innermost statement around it, without the statements within."""
    lines = {}
    for node in ast.walk(tree):  # outer ones come first
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            lines |= dict.fromkeys((id(inner) for inner in ast.walk(node)), (node.lineno, last))
    return lines


def dotted(module: str) -> str:
    """Below PACKAGE: a name alone is one of the verdict's rules."""
    return module if "." in module else f"{VERDICT}.{module}"


def path_of(module: str) -> Path:
    return FOLDER / f"{dotted(module).replace('.', '/')}.py"


def parsed(module: str) -> ast.Module:
    return ast.parse(path_of(module).read_text())


def choices(node: ast.AST) -> list[str]:
    """What can be changed at a node, in words; `change` makes the change of the same number."""
    if isinstance(node, ast.Compare):
        return [f"opposite of: {ast.unparse(node)}" if type(op) in OPPOSITE else "" for op in node.ops]
    if isinstance(node, ast.BoolOp):
        return [f"without {ast.unparse(test)} in: {ast.unparse(node)}" for test in node.values]
    how = "never: if" if isinstance(node, ast.If) else "without the filter: if"
    return [f"{how} {ast.unparse(test)}" for test in dropped(node)]


def change(node: ast.AST, part: int) -> None:
    if isinstance(node, ast.Compare):
        node.ops[part] = OPPOSITE[type(node.ops[part])]()
    elif isinstance(node, ast.If):
        node.test = ast.Constant(False)
    elif isinstance(node, ast.BoolOp):
        del node.values[part]
        if len(node.values) == 1:  # `a` alone: a BoolOp wants two
            node.values = [node.values[0], copy.deepcopy(node.values[0])]
    elif isinstance(node, ast.comprehension):
        node.ifs.remove(dropped(node)[part])


def mutated(m: Mutation) -> ast.Module:
    tree = parsed(m.module)
    change(next(node for i, node in enumerate(ast.walk(tree)) if i == m.place), m.part)
    return ast.fix_missing_locations(tree)


def forget(packages: set[str]) -> None:
    """Takes the modules of these packages, and all that hold something of them, out of those that are imported."""
    below = tuple(f"{PACKAGE}.{package}" for package in packages)
    gone = {name for name in sys.modules if name.startswith(below)}
    while True:
        more = {
            name
            for name, module in sys.modules.items()
            if name.startswith("ntier_analysis") and name not in gone and _holds(module, gone)
        }
        if not more:
            break
        gone |= more
    for name in sorted(gone):
        del sys.modules[name]
        package, _, last = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(last, None)


def _holds(module: ModuleType, gone: set[str]) -> bool:
    """Whether a module has something of these; a package has its own modules anyway."""
    names = [(str(getattr(v, "__name__", "")), str(getattr(v, "__module__", ""))) for v in vars(module).values()]
    own = f"{module.__name__}."
    return any(not name.startswith(own) and (name in gone or where in gone) for name, where in names)


class Broken(importlib.abc.MetaPathFinder):
    """Loads one module with the change."""

    def __init__(self, m: Mutation) -> None:
        self.name, self.path, self.tree = f"{PACKAGE}.{dotted(m.module)}", str(path_of(m.module)), mutated(m)

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        tree = self.tree

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, fullname: str) -> CodeType:
                return compile(tree, self.path, "exec")

        return importlib.util.spec_from_file_location(name, self.path, loader=Loader(name, self.path))


class Lines:
    """A plug-in of pytest that notes which tests pass through which lines of these modules."""

    def __init__(self, modules: list[str]) -> None:
        self.of = {str(path_of(module)): dotted(module) for module in modules}
        self.tests: dict[str, list[str]] = defaultdict(list)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        seen: set[tuple[str, int]] = set()

        def inside(frame, event, argument):
            if event == "line":
                seen.add((frame.f_code.co_filename, frame.f_lineno))
            return inside

        def calls(frame, event, argument):
            return inside if frame.f_code.co_filename in self.of else None

        sys.settrace(calls)
        yield
        sys.settrace(None)
        for path, line in seen:
            self.tests[f"{self.of[path]}:{line}"].append(item.nodeid)


def run(tests: list[str], plugins: list[object]) -> int:
    """pytest's exit code; what it prints is lost."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        options = ["-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
        return int(pytest.main([*options, *tests], plugins=plugins))


def apart(work) -> int:
    """Exit code of `work` in a process of its own: each has its own modules."""
    child = os.fork()
    if not child:
        code = 99
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S))
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def passing(tests: list[str], modules: list[str]) -> dict[str, list[str]]:
    """`module:line` -> tests that pass through it, of these modules. Ends the program if one of the tests fails as
    things are."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.json"

        def work() -> int:
            lines = Lines(modules)
            code = run(tests, [lines])
            path.write_text(json.dumps(lines.tests))
            return code

        if code := apart(work):
            sys.exit(f"error: the tests fail (pytest's code {code}) before anything is changed")
        return json.loads(path.read_text())


def tests_of(m: Mutation, through: dict[str, list[str]]) -> list[str]:
    """Those that pass through the statement, first those that pass through least else."""
    length: dict[str, int] = defaultdict(int)
    for tests in through.values():
        for test in tests:
            length[test] += 1
    first, last = m.lines
    some = {test for line in range(first, last + 1) for test in through.get(f"{dotted(m.module)}:{line}", [])}
    return sorted(some, key=lambda test: (length[test], test))


def noticed(m: Mutation, tests: list[str]) -> bool:
    """Whether one of these tests fails."""

    def work() -> int:
        sys.meta_path.insert(0, Broken(m))
        return run(tests, [])

    return bool(tests) and apart(work) != 0


def default_tests(packages: set[str]) -> list[str]:
    """Those of the verdict, and the folders of other packages."""
    others = [f"analysis/tests/{package}" for package in sorted(packages - {VERDICT})]
    return [*others, *(f"analysis/tests/verdict/{t}" for t in TESTS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=RULES, help="default: all rules of the verdict")
    parser.add_argument("--tests", nargs="+")
    parser.add_argument("--part", default="1/1", metavar="I/N")
    parser.add_argument("--list", action="store_true", help="only list what would be changed")
    given = parser.parse_args()
    first, parts = (int(number) for number in given.part.split("/"))
    every = [m for module in given.modules for m in mutations(module)][first - 1 :: parts]
    if given.list:
        print("\n".join(m.name for m in every))
        return
    os.chdir(ROOT)
    packages = {dotted(module).partition(".")[0] for module in given.modules}
    forget(packages)
    through = passing(given.tests or default_tests(packages), given.modules)
    counts = []
    for module in given.modules:
        some = [m for m in every if m.module == module]
        left = 0
        for m in some:
            tests = tests_of(m, through)
            if not noticed(m, tests):
                left += 1
                print(f"* {m.name}{'' if tests else ' (no test comes here)'}", flush=True)
        counts.append((module, len(some), len(some) - left))
    counts.append(("**all**", sum(n for _, n, _ in counts), sum(n for *_, n in counts)))
    print("\n| module | changes | noticed |\n|---|--:|--:|")
    print("\n".join(f"| {module} | {n} | {seen} |" for module, n, seen in counts))


if __name__ == "__main__":
    main()
