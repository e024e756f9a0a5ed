"""Cells of a table of published runs, read with care: every mistake has its file, line and column."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from corral.spec.errors import SpecError, SpecErrors

REQUIRED = ("run_id", "layers", "hidden", "ffn_hidden", "heads", "vocab", "seq_len", "accelerator", "accelerators")
COLUMNS = (
    *REQUIRED,
    "model",
    "params_b",
    "active_params_b",
    "gated_mlp",
    "kv_heads",
    "head_dim",
    "experts",
    "top_k",
    "nic_gbps_per_accelerator",
    "tp",
    "pp",
    "cp",
    "ep",
    "dp",
    "virtual_stages",
    "sharding",
    "micro_batch",
    "global_batch_seqs",
    "precision",
    "system",
    "recompute",
    "note",
    "tokens_per_s_per_accelerator",
)
_MOST = 1e9  # nothing that a row counts is more
_DIGITS = 10  # of that
_NOTHING = ("n/a", "na", "-", "?", "unknown")
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_SHOWN = 40  # letters of a cell that a message repeats


@dataclass(slots=True, kw_only=True)
class Row:
    """One line of the table. Reading a cell that is wrong notes the mistake and gives a stand-in, so all are found."""

    file: str
    line: int
    places: Mapping[str, int]
    cells: Mapping[str, str]
    errors: list[SpecError] = field(default_factory=list)

    def wrong(self, column: str, message: str) -> None:
        """Notes a mistake in this column."""
        where = f"{column} (column {self.places[column]})"
        self.errors.append(SpecError(file=f"{self.file}:{self.line}", path=where, message=message))

    def text(self, column: str) -> str:
        """The cell, without blanks around it; empty where the table has no such cell, or says that it has nothing."""
        text = self.cells.get(column, "").strip()
        return "" if text.lower() in _NOTHING else text

    def whole(self, column: str, default: int) -> int:
        """A whole number from 1 on; `default` where nothing stands."""
        text = _plain(self.text(column))
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > _DIGITS or not 1 <= int(text) <= _MOST:
            self.wrong(column, f"{_short(text)} is no whole number from 1 to {_MOST:,.0f}")
            return default
        return int(text)

    def count(self, column: str) -> int:
        """A whole number, 0 where nothing stands."""
        return 0 if self.text(column) in ("", "0") else self.whole(column, 0)

    def number(self, column: str) -> float | None:
        """A positive number, not without end; None where nothing stands."""
        text = _plain(self.text(column))
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= _MOST:
            self.wrong(column, f"{_short(text)} is no number above 0 and up to {_MOST:,.0f}")
            return None
        return value


def read_rows(text: str, file: str) -> tuple[Row, ...]:
    """The rows of a CSV table; lines that begin with # are comments. Raises SpecErrors where it is no such table."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if _counts(line)]
    if not lines:
        raise _one(file, "", "holds no table: the first line names the columns")
    header = _cells(lines[0][1], file, lines[0][0])
    _check_header(header, file, lines[0][0])
    places = {name: place for place, name in enumerate(header, start=1)}
    rows = tuple(_rows(lines[1:], header, places, file))
    if not rows:
        raise _one(file, "", "holds no run, only the names of the columns")
    return rows


def _plain(text: str) -> str:
    """Without the commas between its thousands."""
    return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _check_header(header: list[str], file: str, line: int) -> None:
    place = f"{file}:{line}"
    errors = [
        SpecError(file=place, path=name, message="there is no such column, and a run needs it")
        for name in REQUIRED
        if name not in header
    ]
    errors += [
        SpecError(file=place, path=name, message="two columns have this name")
        for name in dict.fromkeys(header)
        if header.count(name) > 1
    ]
    if errors:
        raise SpecErrors(errors)


def _rows(lines: Iterable[tuple[int, str]], header: list[str], places: Mapping[str, int], file: str) -> Iterator[Row]:
    errors = []
    everywhere = {**dict.fromkeys(COLUMNS, 0), **places}
    for number, line in lines:
        cells = _cells(line, file, number)
        if len(cells) != len(header):
            message = f"{len(cells)} cells, and {len(header)} columns"
            errors.append(SpecError(file=f"{file}:{number}", path="", message=message))
            continue
        yield Row(file=file, line=number, places=everywhere, cells=dict(zip(header, cells, strict=True)))
    if errors:
        raise SpecErrors(errors)


def _cells(line: str, file: str, number: int) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise _one(f"{file}:{number}", "", f"is no line of CSV: {error}") from None


def _one(file: str, path: str, message: str) -> SpecErrors:
    return SpecErrors([SpecError(file=file, path=path, message=message)])
