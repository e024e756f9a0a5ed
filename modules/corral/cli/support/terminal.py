"""Decides whether stdout gets colour."""

from __future__ import annotations

import os
import sys


def wants_colour() -> bool:
    """True on a capable terminal, unless NO_COLOR is set (https://no-color.org)."""
    return sys.stdout.isatty() and not refuses_colour() and os.environ.get("TERM") != "dumb"


def refuses_colour() -> bool:
    """True if NO_COLOR is set. corral then also omits bold and dim, which the standard leaves open."""
    return bool(os.environ.get("NO_COLOR"))
