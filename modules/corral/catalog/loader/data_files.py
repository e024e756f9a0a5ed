"""Read the catalog's data files, from a checkout or an installed wheel."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def read_toml(name: str) -> Mapping[str, Any]:
    """Return the content of data/<name>."""
    return tomllib.loads(read_text(name))


def read_csv(name: str) -> tuple[Mapping[str, str], ...]:
    """Return the rows of data/<name> by column name; lines that begin with # are comments."""
    lines = [line for line in read_text(name).splitlines() if not line.startswith("#")]
    return tuple(csv.DictReader(lines, strict=True))


def read_text(name: str) -> str:
    """Return the text of data/<name>."""
    return files("corral.catalog").joinpath("data", name).read_text(encoding="utf-8")
