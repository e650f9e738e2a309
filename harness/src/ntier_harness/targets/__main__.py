"""`python -m ntier_harness.targets NAME`, for set-up: exit code 2 and the names that there are, unless NAME is one."""

from __future__ import annotations

import sys

from ntier_harness.errors import RequestError
from ntier_harness.targets import kind

if __name__ == "__main__":
    try:
        kind(sys.argv[1])
    except RequestError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
