"""The recorded histories of a cluster as a table, and the selection of one by its start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.inventory.history_store import HistoryObject
from corral.report.formatting import duration
from corral.report.tables import heading, table

_TIME = "%Y-%m-%d %H:%M:%S"


def history_view(
    cluster: str, histories: Sequence[HistoryObject], account_option: str = ""
) -> Iterator[RenderableType]:
    """A row per history, the newest first, and the command that shows one of them.

    `account_option`: the end of suggested command lines that selects the same account.
    """
    yield heading(
        cluster, "no recorded history" if not histories else "recorded histories, newest first; times are UTC"
    )
    if histories:
        yield Text()
        yield table(("HISTORY", "SAVED AT", ">DURATION"), [_row(one) for one in histories])
        yield Text(f"\n  corral timeline {cluster} --history {histories[0].id}{account_option}")


def matching_histories(histories: Sequence[HistoryObject], word: str) -> tuple[HistoryObject, ...]:
    """The histories whose id starts with the word, which may contain `:` and blanks."""
    begin = word.strip().replace(":", "-").replace(" ", "T").upper()
    return tuple(one for one in histories if begin and one.id.startswith(begin))


def history_line(cluster: str, one: HistoryObject, *, is_selected: bool) -> str:
    """The line that names the recorded history shown."""
    why = "" if is_selected else f"{cluster} has no head now: "
    saved = f"{one.saved_at:%H:%M:%S}" if one.saved_at.date() == one.began.date() else f"{one.saved_at:{_TIME}}"
    return f"{why}the history that began {one.began:{_TIME}}, saved at {saved} UTC"


def _row(one: HistoryObject) -> tuple[str, str, str]:
    return one.id, f"{one.saved_at:{_TIME}}", duration(max(0.0, (one.saved_at - one.began).total_seconds()))
