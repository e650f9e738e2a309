#!/usr/bin/env python3
"""The driver with a fault: what it draws depends on the client."""

import asyncio
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "load"))
from twophase.drive import Work


class OtherDraws(Work):
    def stream(self, *whose: object) -> random.Random:
        return super().stream(self.told["client"], *whose)


asyncio.run(OtherDraws(Path(sys.argv[2])).run())
