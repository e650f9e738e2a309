"""The command that repeats a sweep, in a form that works in a checkout."""

from __future__ import annotations

import shlex

GOALS = {
    "sweep": (
        "SYSTEM", "TOPO", "VARIANT", "USERS", "ABOVE", "FACTOR", "MIX", "PHASES", "REPS", "MIDDLEWARE", "TARGET",
        "HOSTS", "MACHINES", "BUDGET", "SCALE", "SEARCH", "PRECISION", "MINUTES", "SEED", "NAME", "DATA", "CLIENTS",
        "TRACE", "SET", "ATTEMPTS",
    ),
    "campaign": ("SPEC", "MACHINES", "BUDGET"),
}  # fmt: skip
"""Variables of the Makefile's goals that are options of `ntier` (a test compares them). RESULTS, JSON and METRICS say
where results and progress go and how they are printed: they change nothing that is measured."""
LEFT_OUT = {"--json": 0, "--results": 1, "--metrics": 1}
"""How many values each takes."""


def repeating(command: str) -> str:
    """`ntier sweep --topo 1/1/1/1M --set a=1 --set b=2`, as manifests record it, becomes `make sweep TOPO=1/1/1/1M
    SET='a=1 b=2'`, which also installs what is missing. If make has no variable for an option, the command calls
    `.venv/bin/ntier`; a command of another program stays as it is."""
    try:
        program, goal, *words = shlex.split(command)
    except ValueError:  # fewer than two words, or a quote that does not close
        return command
    if program != "ntier":
        return command
    values = _values(words)
    spaced = any(" " in setting for setting in (values or {}).get("SET", []))
    if values is None or spaced or not set(values) <= set(GOALS.get(goal, ())):
        return f".venv/bin/{command}"
    given = [f"{name}={shlex.quote(' '.join(some))}" for name, some in values.items()]
    return " ".join(["make", goal, *given])


def _values(words: list[str]) -> dict[str, list[str]] | None:
    """NAME -> values of `--name value` and `--name=value`; None if the words are not options with one value each."""
    values: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if not option.startswith("--"):
            return None
        if LEFT_OUT.get(option) == 0:
            continue
        text = value if equals else next(rest, None)
        if text is None:
            return None
        if option not in LEFT_OUT:
            values.setdefault(option[2:].replace("-", "_").upper(), []).append(text)
    return values
