"""Templates of pages and pictures, read once. Values are escaped; a missing value is an error."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template


@cache
def template(name: str) -> Template:
    """The template `templates/report/NAME`."""
    source = files("corral").joinpath("templates", "report", name).read_text(encoding="utf-8")
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    ).from_string(source)
