"""The files of the page of `corral dashboard`: one page, its style and its script. They hold no data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

_TYPES = {
    "page.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file and its media type."""

    content_type: str
    content: bytes


def page_files() -> Mapping[str, PageFile]:
    """The files by name; `page.html` loads the others."""
    return dict(_files())


def _files() -> Iterator[tuple[str, PageFile]]:
    directory = files("corral").joinpath("templates", "report", "dashboard")
    for name, content_type in _TYPES.items():
        yield name, PageFile(content_type=content_type, content=directory.joinpath(name).read_bytes())
