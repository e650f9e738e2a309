"""What one alter does: it moves stock between items and notes the order. The sum of all stock stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

MOVE = "UPDATE items SET stock = stock + %s, note = %s WHERE id = %s"
ORDER = "INSERT INTO orders (id, moves) VALUES (%s, %s)"
MOST = 10  # pieces moved at once


@dataclass(frozen=True)
class Change:
    """`moves`: item -> difference of its stock, in ascending order of the items. All who write lock rows in this order,
    so that they never wait for each other in a circle."""

    order: str
    moves: tuple[tuple[int, int], ...]
    note: str

    @property
    def rows(self) -> list[tuple[int, str, int]]:
        """Values of MOVE."""
        return [(difference, self.note, item) for item, difference in self.moves]

    @property
    def statements(self) -> int:
        return len(self.moves) + 1


def draw(draws: Random, order: str, transfers: int, items: int, note_bytes: int) -> Change:
    """`transfers` moves between two different items each; all items of one change differ. Raises ValueError if there
    are not enough."""
    chosen = draws.sample(range(1, items + 1), 2 * transfers)
    moves: dict[int, int] = {}
    for giver, taker in zip(chosen[::2], chosen[1::2], strict=True):
        pieces = draws.randint(1, MOST)
        moves[giver], moves[taker] = -pieces, pieces
    return Change(
        order, tuple(sorted(moves.items())), f"{draws.getrandbits(32):08x}".ljust(note_bytes, ".")[:note_bytes]
    )
