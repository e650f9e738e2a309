"""The table of docs/targets.md that says what topologies cost on rented machines, from the prices of the data file.

python docs/prices.py           writes it anew
python docs/prices.py --check   exit code 1 if it is not what the prices say"""

from __future__ import annotations

import sys
from pathlib import Path

from ntier_harness import plan
from ntier_harness.request import make_spec
from ntier_harness.targets.inventory import wanted_nodes
from ntier_harness.targets.paying import DOWN_S
from ntier_harness.targets.rental import hours, priced, read_offer

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "targets.md"
BEGIN, END = "<!-- prices of hcloud: made by docs/prices.py -->\n", "<!-- end of prices -->\n"
TOPOLOGIES = ("1/1/1/1P", "1/1/1/1M", "1/2/1/2P", "1/2/1/9M", "1/2/1/9ML", "1/4/1/9M")
SWEEPS = {
    "13 loads, short phases": {"users": "1000:13000:1000"},
    "13 loads, standard phases": {"users": "1000:13000:1000", "phases": "standard"},
    "the same, three times": {"users": "1000:13000:1000", "phases": "standard", "reps": "3"},
}


def table() -> str:
    offer = read_offer(ROOT / "terraform/targets/hcloud/machines.json")
    lines = [
        f"Prices of {offer.date} in {offer.currency} ({offer.note}). Source: {offer.source}.",
        "",
        "| topology | machines | per hour | " + " | ".join(SWEEPS) + " |",
        "|---|---|---|" + "---|" * len(SWEEPS),
    ]
    for topology in TOPOLOGIES:
        cells, of_topology = [], {}
        for options in SWEEPS.values():
            spec = make_spec({"topo": topology, "target": "hcloud", **options}, ROOT, 2)
            of_topology = priced(offer, {name: node_type for name, _, node_type in wanted_nodes(spec)})
            seconds = plan.sweep_duration_s(spec, len(plan.order(spec)), deployed=False, up=True)
            seconds += plan.INSTALL_S + DOWN_S
            cells.append(f"{of_topology['per_hour'] * hours(seconds):.2f} ({hours(seconds)} h)")
        machines = ", ".join(f"{n} {name}" for name, n in of_topology["machines"].items())
        lines.append(f"| {topology} | {machines} | {of_topology['per_hour']:.2f} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the table as it should be."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def main() -> int:
    text = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        return int(page(text) != text)
    PAGE.write_text(page(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
