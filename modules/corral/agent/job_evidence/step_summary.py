"""The lines that `corral_step` wrote in one process, as one record. Pure; any line may be anything."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any

from corral.model.job_evidence import RankSteps, StepPoint
from corral.model.printable import printable

_NEWEST = 600  # lines: ten minutes or more, since a line covers a second or more
_WARM_UP = 3  # first lines of a process: it compiles, and the loader fills its queues
_ENOUGH = 10  # lines without which nothing is left out
_MOST_POINTS = 40  # of a curve, which has to fit into an answer beside a page of processes
_LONGEST = 300  # characters of a text
MOST_VARIABLES = 64
_TIMES = ("seconds", "data_s", "communication_s")
LARGEST = 2.0**62  # of any number: beyond it, sums would not be finite


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRank:
    """A process: its steps, also over time, and its variables."""

    steps: RankSteps
    variables: Mapping[str, str]
    curve: tuple[StepPoint, ...]


def read_rank(rank: int, text: str, newest: int = _NEWEST) -> ReadRank:
    """The newest run of a process, from the lines of its file; its steps by the `newest` lines alone."""
    header, records = _newest_run(_documents(text.split("\n")))
    steps = _counted(records, newest)
    variables = header.get("variables")
    return ReadRank(
        steps=_summary(rank, header, records, steps),
        variables={
            printable(name): printable(value, _LONGEST)
            for name, value in sorted(variables.items() if isinstance(variables, dict) else ())[:MOST_VARIABLES]
            if isinstance(value, str)
        },
        curve=tuple(_curve(steps)),
    )


def _documents(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """The objects; a line that was cut by the end of its process or of the file's size is left out."""
    for line in lines:
        try:
            found = json.loads(line) if line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _newest_run(documents: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    """The last header, and what the process wrote that wrote it. A file that grows too long begins with it again."""
    header: Mapping[str, Any] = {}
    records: list[Mapping[str, Any]] = []
    for one in documents:
        if "corral_step" not in one:
            records.append(one)
        elif one.get("at") != header.get("at"):
            header, records = one, []
    return header, records


def _summary(
    rank: int, header: Mapping[str, Any], records: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]
) -> RankSteps:
    found = RankSteps(
        rank=rank,
        node=printable(str(header.get("node", ""))),
        size=_count(header, "size"),
        restarts=_count(header, "restarts"),
        is_closed=any("closed" in one for one in records),
    )
    errors = [one for one in records if "error" in one]
    if steps:
        found = _rounded(_with_steps(found, steps))
    if errors:
        error, message = str(errors[-1]["error"]), str(errors[-1].get("message", ""))
        found = replace(found, error=printable(error), message=printable(message, _LONGEST))
    return found


def _counted(records: Sequence[Mapping[str, Any]], newest: int) -> Sequence[Mapping[str, Any]]:
    """The newest records of steps, without the first ones of a process."""
    steps = [one for one in records if _count(one, "steps")]
    return steps[_WARM_UP:][-newest:] if len(steps) >= _ENOUGH else steps


def _curve(records: Sequence[Mapping[str, Any]]) -> Iterator[StepPoint]:
    """The records over time, each point as many of them."""
    each = -(-len(records) // _MOST_POINTS)
    for start in range(0, len(records), each or 1):
        part = records[start : start + each]
        seconds, data, communication = (sum(_number(one, name) for one in part) for name in _TIMES)
        total, loss = seconds or math.inf, _last(part, "loss")
        knows_communication = any("communication_s" in one for one in part)
        yield StepPoint(
            at=_count(part[-1], "at"),
            step=_count(part[-1], "step"),
            step_s=_digits(seconds / sum(_count(one, "steps") for one in part)),
            tokens_per_s=_digits(sum(_number(one, "tokens") for one in part) / total),
            data_share=_digits(min(1.0, data / total)),
            communication_share=_digits(min(1.0, communication / total)) if knows_communication else None,
            loss=None if loss is None else _digits(loss),
        )


def _with_steps(found: RankSteps, records: Sequence[Mapping[str, Any]]) -> RankSteps:
    counts = [_count(one, "steps") for one in records]
    seconds, data, communication = ([_number(one, name) for one in records] for name in _TIMES)
    checkpoints = [_number(one, "checkpoint_s") for one in records]
    total, saved = sum(seconds) or math.inf, sum(checkpoints)
    each = sorted(one / count for one, count in zip(seconds, counts, strict=True))
    own = [
        max(0.0, one - waited - exchanged) / count
        for one, waited, exchanged, count in zip(seconds, data, communication, counts, strict=True)
    ]
    knows_communication = any("communication_s" in one for one in records)
    return replace(
        found,
        lines=len(records),
        steps=sum(counts),
        last_step=_count(records[-1], "step"),
        last_at=_count(records[-1], "at"),
        seconds=sum(seconds),
        step_s=median(each),
        slow_step_s=each[int(0.95 * (len(each) - 1))],
        own_s=median(own),
        data_share=min(1.0, sum(data) / total),
        communication_share=min(1.0, sum(communication) / total) if knows_communication else None,
        checkpoint_share=saved / (total + saved),
        checkpoints=sum(1 for one in checkpoints if one),
        checkpoint_s=max(checkpoints),
        tokens_per_s=sum(_number(one, "tokens") for one in records) / total,
        loss=_last(records, "loss"),
        write_s=_median(records, "write_s"),
        saved_at=_as_int(_last(records, "saved_at")),
        saved_after_s=_last(records, "saved_after_s"),
        memory_peak=_as_int(_last(records, "memory_peak")),
        memory_reserved=_as_int(_last(records, "memory_reserved")),
        memory_total=_as_int(_last(records, "memory_total")),
        memory_retries=_retries(records),
    )


def _rounded(found: RankSteps) -> RankSteps:
    """The same with four significant digits: a page of many processes must fit into one answer."""
    values: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
    rounded: dict[str, Any] = {name: _digits(one) for name, one in values.items() if isinstance(one, float)}
    return replace(found, **rounded)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _retries(records: Sequence[Mapping[str, Any]]) -> int:
    """How often the allocator emptied its cache within these records; it counts from the start of the process."""
    found = [_count(one, "memory_retries") for one in records if "memory_retries" in one]
    return max(0, found[-1] - found[0]) if found else 0


def _last(records: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return next((_number(one, name) for one in reversed(records) if _is_number(one.get(name))), None)


def _median(records: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = [_number(one, name) for one in records if _is_number(one.get(name))]
    return median(found) if found else None


def _as_int(value: float | None) -> int | None:
    return None if value is None else int(value)


def _count(record: Mapping[str, Any], name: str) -> int:
    return int(_number(record, name))


def _number(record: Mapping[str, Any], name: str) -> float:
    """A finite number that is not negative, 0 for anything else; a loss may be negative."""
    value = record.get(name)
    if not _is_number(value):
        return 0.0
    number = float(value)  # type: ignore[arg-type]
    return number if name == "loss" else max(0.0, number)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
