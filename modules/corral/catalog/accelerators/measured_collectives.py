"""Measured collective operations: duration by message size and machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from corral.catalog.loader.data_files import read_csv
from corral.catalog.loader.suggestions import UnknownName

SAME_AS = {"p4d.24xlarge": "p4de.24xlarge", "p5e.48xlarge": "p5.48xlarge", "p5en.48xlarge": "p5.48xlarge"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCurve:
    """All-reduce on these machines. `points`: (bytes of the whole buffer, seconds), by size."""

    fabric: str
    nodes: int
    accelerators_per_node: int
    points: tuple[tuple[int, float], ...]

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.nodes * self.accelerators_per_node


@cache
def measured_curves() -> Mapping[str, MeasuredCurve]:
    """Return every curve, by instance type."""
    rows = read_csv("collectives.csv")
    return MappingProxyType({name: _curve(name, rows) for name in sorted({row["fabric"] for row in rows})})


def find_curve(instance_type: str) -> MeasuredCurve:
    """Return the curve of this type, or of the type with the most similar network. Raises UnknownName without one."""
    curves = measured_curves()
    name = SAME_AS.get(instance_type, instance_type)
    if name not in curves:
        raise UnknownName("all-reduce curve", instance_type, [*curves, *SAME_AS])
    return curves[name]


def _curve(name: str, rows: tuple[Mapping[str, str], ...]) -> MeasuredCurve:
    own = [row for row in rows if row["fabric"] == name]
    return MeasuredCurve(
        fabric=name,
        nodes=int(own[0]["nodes"]),
        accelerators_per_node=int(own[0]["accelerators_per_node"]),
        points=tuple(sorted((int(row["size_bytes"]), float(row["time_us"]) / 1e6) for row in own)),
    )
