#!/usr/bin/python3
"""Content of a wiki from a seed: dump.xml, which MediaWiki's maintenance/importDump.php reads, and data.json, which
says what is in it.

    generate.py --profile tiny --seed 1 --out DIR

The same profile and seed give the same bytes. Standard library only."""

from __future__ import annotations

import argparse
import bisect
import datetime
import itertools
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class Profile:
    articles: int
    categories: int
    mean_revisions: float
    accounts: int


# The sizes are our choice: tiny is imported in half a minute, small in some minutes.
PROFILES = {
    "tiny": Profile(articles=150, categories=12, mean_revisions=2, accounts=1000),
    "small": Profile(articles=1500, categories=60, mean_revisions=4, accounts=3000),
}
VOCABULARY = 6000  # words; their frequency falls with their rank, as in natural language (Zipf)
MEAN_WORDS = 650  # of an article: Wikipedia's English articles have about so many
SIGMA_WORDS = 0.8  # of the logarithm of their lengths: some pages are long
WORDS_PER_LINK = 25
REFERENCES = 0.1  # share of the sentences that have one
MAIN_PAGE_LINKS = 30
EPOCH = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]


class Zipf:
    """Draws ranks 0..count-1; rank r has a weight of 1 / (r + 1)."""

    def __init__(self, count: int) -> None:
        self.sums = list(itertools.accumulate(1 / (rank + 1) for rank in range(count)))

    def draw(self, source: random.Random) -> int:
        return bisect.bisect(self.sums, source.random() * self.sums[-1])


class Wiki:
    """Titles, categories and pages, drawn in a fixed order."""

    def __init__(self, profile: Profile, seed: int) -> None:
        self.profile = profile
        self.random = random.Random(f"wiki {seed}")  # noqa: S311 (the same content again, not a secret)
        self.words = self._words()
        self.titles = self._titles()
        self.categories = [f"{word.capitalize()} things" for word in self.words[-profile.categories :]]
        self.word_ranks, self.title_ranks = Zipf(VOCABULARY), Zipf(profile.articles)
        self.clock = EPOCH

    def _words(self) -> list[str]:
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            words["".join(self.random.choices(SYLLABLES, k=self.random.choice((1, 2, 2, 3, 3, 4))))] = None
        return list(words)

    def _titles(self) -> list[str]:
        """Of two words each: searches for a word of a title find several."""
        titles: dict[str, None] = {}
        while len(titles) < self.profile.articles:
            first, second = self.random.choices(self.words[: VOCABULARY // 4], k=2)
            titles[f"{first.capitalize()} {second}"] = None
        return list(titles)

    def word(self) -> str:
        return self.words[self.word_ranks.draw(self.random)]

    def link(self) -> str:
        title = self.titles[self.title_ranks.draw(self.random)]
        return f"[[{title}]]" if self.random.random() < 0.5 else f"[[{title}|{title.split()[1]}]]"

    def sentence(self) -> str:
        words = [self.link() if self.random.random() < 1 / WORDS_PER_LINK else self.word()
                 for _ in range(self.random.randint(6, 22))]  # fmt: skip
        text = " ".join(words)
        return f"{text[0].upper()}{text[1:]}.{self.reference() if self.random.random() < REFERENCES else ''}"

    def reference(self) -> str:
        return (
            f"<ref>{self.word().capitalize()} {self.random.randint(1950, 2023)}, p. {self.random.randint(1, 400)}</ref>"
        )

    def paragraph(self, words: int) -> str:
        sentences: list[str] = []
        while sum(len(s.split()) for s in sentences) < words:
            sentences.append(self.sentence())
        return " ".join(sentences)

    def article(self, title: str) -> list[str]:
        """Texts of the revisions: each adds a section to the one before."""
        words = self.random.lognormvariate(0, SIGMA_WORDS) * MEAN_WORDS / 2.718281828 ** (SIGMA_WORDS**2 / 2)
        revisions = 1 + min(20, int(self.random.expovariate(1 / (self.profile.mean_revisions - 1))))
        infobox = (f"{{{{Infobox|name={title}|kind={self.word()}|year={self.random.randint(1200, 2020)}"
                   f"|size={self.random.randint(1, 9999)}}}}}")  # fmt: skip
        chosen = self.random.sample(self.categories, self.random.randint(1, 3))
        categories = "".join(f"\n[[Category:{name}]]" for name in chosen)
        sections = max(revisions, int(words / 150) + 1)
        parts = [f"'''{title}''' {self.paragraph(int(words / sections))}"]
        for _ in range(sections - 1):
            parts.append(f"== {self.word().capitalize()} {self.word()} ==\n{self.paragraph(int(words / sections))}")
        first = sections - revisions + 1
        return [f"{infobox}\n" + "\n\n".join(parts[: first + i]) + f"\n\n== References ==\n<references/>\n{categories}"
                for i in range(revisions)]  # fmt: skip

    def main_page(self) -> str:
        links = "\n".join(f"* [[{title}]]: {self.paragraph(12)}" for title in self.titles[:MAIN_PAGE_LINKS])
        categories = " · ".join(f"[[:Category:{c}|{c}]]" for c in self.categories)
        head = f"'''A wiki from a seed.''' {self.profile.articles} articles."
        return f"{head}\n\n== Articles ==\n{links}\n\n== Categories ==\n{categories}"

    def timestamp(self) -> str:
        self.clock += datetime.timedelta(seconds=self.random.randint(60, 3600))
        return self.clock.strftime("%Y-%m-%dT%H:%M:%SZ")

    def pages(self) -> Iterator[tuple[int, str, list[str]]]:
        """Number of the namespace, title, texts of the revisions."""
        yield 10, "Template:Infobox", [INFOBOX]
        yield 0, "Main Page", [self.main_page()]
        for category in self.categories:
            yield 14, f"Category:{category}", [self.paragraph(40)]
        for title in self.titles:
            yield 0, title, self.article(title)


INFOBOX = """{| class="wikitable infobox"
! colspan="2" | {{{name}}}
|-
| Kind || {{#if: {{{kind|}}} | {{{kind}}} | unknown }}
|-
| Century || {{#expr: floor(({{{year}}} - 1) / 100) + 1}}
|-
| Size || {{#switch: {{#expr: {{{size}}} > 1000}} | 1 = large ({{formatnum:{{{size}}}}}) | 0 = small ({{{size}}}) }}
|}"""
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
"""


def write_dump(wiki: Wiki, path: Path) -> dict[str, int]:
    """Writes the dump; how many pages and revisions it has."""
    counts = {"pages": 0, "revisions": 0}
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        for namespace, title, texts in wiki.pages():
            counts["pages"] += 1
            file.write(f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>{counts['pages']}</id>\n")
            for text in texts:
                counts["revisions"] += 1
                account = f"User {wiki.random.randint(1, wiki.profile.accounts)}"
                file.write(
                    f"<revision><id>{counts['revisions']}</id><timestamp>{wiki.timestamp()}</timestamp>"
                    f"<contributor><username>{account}</username><id>0</id></contributor>"
                    f"<model>wikitext</model><format>text/x-wiki</format>"
                    f'<text xml:space="preserve">{escape(text)}</text></revision>\n'
                )
            file.write("</page>\n")
        file.write("</mediawiki>\n")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", choices=PROFILES, default="tiny", help="size of the wiki")
    parser.add_argument("--seed", type=int, default=1, help="of all draws")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder for dump.xml and data.json; made if needed"
    )
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    wiki = Wiki(PROFILES[asked.profile], asked.seed)
    counts = write_dump(wiki, asked.out / "dump.xml")
    data = {"profile": asked.profile, "seed": asked.seed, "accounts": wiki.profile.accounts, **counts,
            "article": wiki.titles[0], "articles": len(wiki.titles)}  # fmt: skip
    (asked.out / "data.json").write_text(json.dumps(data, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
