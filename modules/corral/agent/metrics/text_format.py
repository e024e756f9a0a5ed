"""Prometheus's text format, version 0.0.4. Pure.

Source: Prometheus's documentation, "Exposition formats" and "Metric and label naming". `promtool check metrics` reads
the result in the tests.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from corral.model.printable import printable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LABEL_LENGTH = 64  # characters; a label is kept in memory for each of its series


class Kind(StrEnum):
    """The types of metrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value. `suffix`: what its name adds to the metric's, as `_bucket` of a histogram."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What a metric is: its name with its unit, its type, and one sentence about it."""

    name: str
    kind: Kind
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A metric with its samples."""

    metric: Metric
    samples: tuple[Sample, ...]


def exposition(families: Iterable[Family]) -> str:
    """The text of these metrics. One without samples is left out."""
    return "".join(f"{line}\n" for family in families if family.samples for line in _lines(family))


def histogram(labels: Mapping[str, str], values: Iterable[float], bounds: Sequence[float]) -> tuple[Sample, ...]:
    """The samples of a histogram of these values. `bounds`: the upper bounds of its buckets, ascending."""
    found = tuple(values)
    buckets = (
        Sample(
            suffix="_bucket",
            labels={**labels, "le": f"{bound:g}"},
            value=sum(value <= bound for value in found),
        )
        for bound in bounds
    )
    return (
        *buckets,
        Sample(suffix="_bucket", labels={**labels, "le": "+Inf"}, value=len(found)),
        Sample(suffix="_sum", labels=labels, value=sum(found)),
        Sample(suffix="_count", labels=labels, value=len(found)),
    )


def label_value(text: str) -> str:
    """A text that users write, such as an account, as the value of a label: printable, and of bounded length."""
    return printable(text, LABEL_LENGTH)


def _lines(family: Family) -> Iterator[str]:
    metric = family.metric
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    yield from (_line(f"{metric.name}{sample.suffix}", sample) for sample in family.samples)


def _line(name: str, sample: Sample) -> str:
    labels = ",".join(f'{key}="{_quoted(value)}"' for key, value in sample.labels.items())
    return f"{name}{{{labels}}} {_number(sample.value)}" if labels else f"{name} {_number(sample.value)}"


def _number(value: float) -> str:
    """Whole numbers without a fraction, others in full."""
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")
