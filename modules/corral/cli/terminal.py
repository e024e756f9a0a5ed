"""What stdout is: whether somebody looks at it, and whether they want colour."""

from __future__ import annotations

import os
import sys


def wants_colour() -> bool:
    """True on a terminal that can show it, unless NO_COLOR is set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
