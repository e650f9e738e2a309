"""docs/wrong-bottlenecks.md names tests: each must exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PLACES = ("analysis/tests", "harness/tests", "harness/tests/real", "")
NAMED = re.compile(r"([\w/]+\.py)|::(test_\w+\*?)")


def test_every_test_that_the_list_of_traps_names_exists():
    text = (ROOT / "docs/wrong-bottlenecks.md").read_text()
    missing, existing = [], 0
    for row in text.splitlines():
        source = ""
        for file, name in NAMED.findall(row):
            if file:
                there = [ROOT / place / file for place in PLACES if (ROOT / place / file).exists()]
                source = there[0].read_text() if there else ""
                missing += [file] * (not there)
            else:
                pattern = rf"^def {name[:-1]}\w*\(" if name.endswith("*") else rf"^def {name}\("
                missing += [name] * (not re.search(pattern, source, re.MULTILINE))
                existing += 1
    assert not missing
    assert existing > 100
