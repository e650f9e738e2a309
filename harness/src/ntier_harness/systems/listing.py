"""A system in a few lines, for `ntier systems`."""

from __future__ import annotations

from ntier_harness import catalog
from ntier_harness.systems import System


def text(system: System) -> str:
    """Name, title, notation, and what a request may choose, the default first."""
    d = system.definition
    forms = " or ".join("/".join(form) for form in d.notation.forms)
    lines = [f"{d.name}: {d.title}", f"  {'TOPO':<12} {forms}, for example {d.notation.example}"]
    rows = {"MIX": _first(d.load.default_workload, catalog.mix_names(system))}
    for name, variant in d.variants.items():
        choices = [f"{c.letter} ({n})" if c.letter else n for n, c in variant.choices.items() if c.available]
        rows[f"{name}"] = _first(variant.default, choices)
    if d.data:
        rows["DATA"] = _first(d.data.default, list(d.data.profiles))
    rows["PHASES"] = _first(catalog.default_phases(system), list(catalog.phase_names(system)))
    rows["load"] = [f"{d.load.model.value}, factor {d.load.factor.name} {d.load.factor.default}"]
    rows["settings"] = list(d.settings)
    lines += [f"  {name:<12} {', '.join(values)}" for name, values in rows.items() if values]
    return "\n".join(lines)


def _first(name: str | None, names: list[str]) -> list[str]:
    return sorted(names, key=lambda n: n != name)
