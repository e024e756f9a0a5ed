"""The lives of a cluster that are kept, as a table, and the one that somebody means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.inventory.lives import LifeObject
from corral.report.amounts import duration
from corral.report.tables import heading, table

_TIME = "%Y-%m-%d %H:%M:%S"


def lives_view(cluster: str, lives: Sequence[LifeObject], account_option: str = "") -> Iterator[RenderableType]:
    """A line each, the newest first, with the command that draws one of them.

    `account_option`: what a command line ends with to mean the account that was read.
    """
    yield heading(cluster, "no life is kept" if not lives else "lives that are kept, the newest first; times are UTC")
    if lives:
        yield Text()
        yield table(("LIFE", "KEPT AT", ">SO LONG"), [_row(one) for one in lives])
        yield Text(f"\n  corral timeline {cluster} --life {lives[0].word}{account_option}")


def meant(lives: Sequence[LifeObject], word: str) -> tuple[LifeObject, ...]:
    """Those of the lives that the word can mean: it is how their own begin, `:` and a blank allowed."""
    begin = word.strip().replace(":", "-").replace(" ", "T").upper()
    return tuple(one for one in lives if begin and one.word.startswith(begin))


def kept_line(cluster: str, one: LifeObject, *, is_asked_for: bool) -> str:
    """What is drawn where no head is asked."""
    why = "" if is_asked_for else f"{cluster} has no head now: "
    kept = f"{one.kept:%H:%M:%S}" if one.kept.date() == one.began.date() else f"{one.kept:{_TIME}}"
    return f"{why}the life that began {one.began:{_TIME}}, kept at {kept} UTC"


def _row(one: LifeObject) -> tuple[str, str, str]:
    return one.word, f"{one.kept:{_TIME}}", duration(max(0.0, (one.kept - one.began).total_seconds()))
