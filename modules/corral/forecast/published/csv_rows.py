"""The rows of a table of published runs. Every error has its file, line and column."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from corral.spec.spec_errors import SpecError, SpecErrors

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
_MAX = 1e9  # maximum of any number in a row
_DIGITS = 10  # digits of the maximum
_NOTHING = ("n/a", "na", "-", "?", "unknown")
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_SHOWN = 40  # characters of a cell in an error


@dataclass(slots=True, kw_only=True)
class CsvRow:
    """A row of the table. It records errors and continues with a default value, so that all errors are found."""

    file: str
    line: int
    column_numbers: Mapping[str, int]
    cells: Mapping[str, str]
    errors: list[SpecError] = field(default_factory=list)

    def wrong(self, column: str, message: str, fix: str = "") -> None:
        """Record an error in this column."""
        where = f"{column} (column {self.column_numbers[column]})"
        self.errors.append(SpecError(file=f"{self.file}:{self.line}", path=where, message=message, fix=fix))

    def text(self, column: str) -> str:
        """The stripped cell; empty if the column is missing or the cell has a word for no value."""
        text = self.cells.get(column, "").strip()
        return "" if text.lower() in _NOTHING else text

    def whole(self, column: str, default: int) -> int:
        """A whole number from 1 on; `default` for an empty cell."""
        text = _plain(self.text(column))
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > _DIGITS or not 1 <= int(text) <= _MAX:
            self.wrong(column, f"{_short(text)} is not a whole number from 1 to {_MAX:,.0f}")
            return default
        return int(text)

    def count(self, column: str) -> int:
        """A whole number; 0 for an empty cell."""
        return 0 if self.text(column) in ("", "0") else self.whole(column, 0)

    def number(self, column: str) -> float | None:
        """A positive, finite number; None for an empty cell."""
        text = _plain(self.text(column))
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= _MAX:
            self.wrong(column, f"{_short(text)} is not a number above 0 and up to {_MAX:,.0f}")
            return None
        return value


def read_rows(text: str, file: str) -> tuple[CsvRow, ...]:
    """The rows of a CSV table; lines that begin with # are comments. Raises SpecErrors for anything else."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if _counts(line)]
    if not lines:
        raise _one(file, "", "is not a table: its first line must name the columns")
    header = _cells(lines[0][1], file, lines[0][0])
    _check_header(header, file, lines[0][0])
    column_numbers = {name: location for location, name in enumerate(header, start=1)}
    rows = tuple(_rows(lines[1:], header, column_numbers, file))
    if not rows:
        raise _one(file, "", "has no runs, only column names")
    return rows


def _plain(text: str) -> str:
    """The number without thousands separators."""
    return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _check_header(header: list[str], file: str, line: int) -> None:
    location = f"{file}:{line}"
    errors = [
        SpecError(file=location, path=name, message="required column is missing")
        for name in REQUIRED
        if name not in header
    ]
    errors += [
        SpecError(file=location, path=name, message="duplicate column")
        for name in dict.fromkeys(header)
        if header.count(name) > 1
    ]
    if errors:
        raise SpecErrors(errors)


def _rows(
    lines: Iterable[tuple[int, str]], header: list[str], column_numbers: Mapping[str, int], file: str
) -> Iterator[CsvRow]:
    errors = []
    everywhere = {**dict.fromkeys(COLUMNS, 0), **column_numbers}
    for number, line in lines:
        cells = _cells(line, file, number)
        if len(cells) != len(header):
            message = f"has {len(cells)} cells, the header has {len(header)} columns"
            errors.append(SpecError(file=f"{file}:{number}", path="", message=message))
            continue
        yield CsvRow(file=file, line=number, column_numbers=everywhere, cells=dict(zip(header, cells, strict=True)))
    if errors:
        raise SpecErrors(errors)


def _cells(line: str, file: str, number: int) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise _one(f"{file}:{number}", "", f"is not a line of CSV: {error}") from None


def _one(file: str, path: str, message: str) -> SpecErrors:
    return SpecErrors([SpecError(file=file, path=path, message=message)])
