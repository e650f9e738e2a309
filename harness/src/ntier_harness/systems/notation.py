"""A topology in the notation of its system: `1/2/1/9ML` or `4` -> nodes of each tier, variants, node types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ntier_harness.errors import RequestError
from ntier_harness.systems.definition import Definition, Tier

_FORM = re.compile(r"(\d{1,9}(?:[/-]\d{1,9})*)([A-Za-z]*)")


@dataclass(frozen=True)
class Topology:
    """How many nodes of what. `counts` in the order of the tiers; `letters`: choice of each variant that has letters;
    `node_types`: of tiers whose nodes are not of their usual type."""

    text: str
    counts: dict[str, int] = field(hash=False)
    letters: dict[str, str] = field(hash=False)
    node_types: dict[str, str] = field(hash=False)
    kinds: dict[str, str] = field(hash=False)
    """What the letters say of each tier's nodes; those of another kind are others."""
    beside: tuple[str, ...] = ()
    """Tiers that the numbers do not count."""

    def __str__(self) -> str:
        return self.text

    @property
    def slug(self) -> str:
        """The form for paths and keys: `1-2-1-9ML`."""
        return self.text.replace("/", "-")

    @property
    def node_count(self) -> int:
        """Clients not included."""
        return sum(self.counts.values())


def parse(system: Definition, text: str) -> Topology:
    """Reads a topology, also as a slug (`1-2-1-9ML`). Raises RequestError naming the wrong part."""
    match = _FORM.fullmatch(text.strip())
    forms = {len(form): form for form in system.notation.forms}
    numbers = [int(n) for n in re.split("[/-]", match[1])] if match else []
    if not match or len(numbers) not in forms:
        shapes = " or ".join("/".join(form) for form in forms.values())
        raise RequestError(f"topology {text!r}: expected numbers {shapes}, for example {system.notation.example}")
    counts = {}
    for tier, count in zip(forms[len(numbers)], numbers, strict=True):
        low, high = system.tier(tier).counts
        if not low <= count <= high:
            raise RequestError(f"topology {text!r}: {tier} count is {count}, allowed are {low}..{high}")
        counts[tier] = count
    letters, node_types = _letters(system, text, match[2])
    beside = {t.name: t.counts[0] for t in system.tiers if t.only and _exists(t, letters)}
    kinds = {system.variants[name].tier: choice for name, choice in letters.items()}
    kinds |= {tier: f"{kinds.get(tier, '')} {kind}".strip() for tier, kind in node_types.items()}
    counts |= beside
    ordered = {tier: counts[tier] for tier in system.tier_names if tier in counts}
    return Topology("/".join(map(str, numbers)) + match[2], ordered, letters, node_types, kinds, tuple(beside))


def _exists(tier: Tier, letters: dict[str, str]) -> bool:
    return all(letters.get(variant) in choices for variant, choices in tier.only.items())


def _letters(system: Definition, text: str, given: str) -> tuple[dict[str, str], dict[str, str]]:
    """Choices of the variants in their order, then node types."""
    left, chosen, node_types = given, {}, {}
    for name, variant in system.variants.items():
        known = {c.letter: choice for choice, c in variant.choices.items() if c.letter}
        if not known:
            continue
        if left[:1] in known:
            chosen[name], left = known[left[0]], left[1:]
        elif variant.default is None:
            allowed = ", ".join(f"{letter} ({choice})" for letter, choice in known.items())
            more = ", then an optional " + " or ".join(system.notation.node_types) if system.notation.node_types else ""
            is_ = left[:1] or "missing"
            raise RequestError(f"topology {text!r}: {variant.title} letter is {is_}, allowed are {allowed}{more}")
    for letter, change in system.notation.node_types.items():
        if left.startswith(letter):
            node_types[change.tier], left = change.node_type, left[1:]
    if left:
        known = [c.letter for v in system.variants.values() for c in v.choices.values() if c.letter]
        allowed = ", ".join([*known, *system.notation.node_types]) or "none"
        raise RequestError(f"topology {text!r}: letters {given!r} are unknown; allowed are {allowed}")
    for name, choice in chosen.items():
        variant = system.variants[name]
        if not variant.choices[choice].available:
            there = {c.letter: n for n, c in variant.choices.items() if c.available and c.letter}
            allowed = ", ".join(f"{k} ({variant.choices[n].title or n})" for k, n in there.items())
            letter = variant.choices[choice].letter
            raise RequestError(f"{text!r}: {variant.title} {letter} is not built yet; allowed are {allowed}")
    return chosen, node_types
