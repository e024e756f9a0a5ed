"""What stdout is: whether somebody looks at it, and whether they want colour."""

from __future__ import annotations

import os
import sys


def wants_colour() -> bool:
    """True on a terminal that can show it, unless NO_COLOR is set (https://no-color.org)."""
    return sys.stdout.isatty() and not refuses_colour() and os.environ.get("TERM") != "dumb"


def refuses_colour() -> bool:
    """True where NO_COLOR is set: then bold and dim are left out too, which its page leaves open."""
    return bool(os.environ.get("NO_COLOR"))
