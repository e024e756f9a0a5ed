"""Which share of a region's spot instances of a type AWS takes back in a month: bands of its Spot Instance Advisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from corral.catalog.names import UnknownName
from corral.catalog.tables import read_csv

ADVISOR = "AWS Spot Instance Advisor"
LAST_ENDS = 0.5  # AWS names no end for the last band; an instance in two is an assumption


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotBand:
    """A share of spot instances that AWS took back in a month, parts of 1. `assumed`: its end is corral's word."""

    label: str
    low: float
    high: float
    assumed: bool = False
    source: str = ADVISOR


BANDS = (
    SpotBand(label="<5%", low=0.0, high=0.05),
    SpotBand(label="5-10%", low=0.05, high=0.10),
    SpotBand(label="10-15%", low=0.10, high=0.15),
    SpotBand(label="15-20%", low=0.15, high=0.20),
    SpotBand(label=">20%", low=0.20, high=LAST_ENDS, assumed=True),
)
ANY = SpotBand(label="any band", low=BANDS[0].low, high=LAST_ENDS, assumed=True)


def find_spot_band(label: str) -> SpotBand:
    """The band of this label (`5-10%`). Raises UnknownName where there is none."""
    for band in BANDS:
        if band.label == label:
            return band
    raise UnknownName("band of the Spot Instance Advisor", label, [band.label for band in BANDS])


def published_band(instance_type: str, region: str) -> SpotBand | None:
    """The band of this type there, in the catalogue's copy; None where that has none."""
    return _published().get((instance_type, region))


@cache
def _published() -> Mapping[tuple[str, str], SpotBand]:
    rows = read_csv("spot_bands.csv")
    return {(row["instance_type"], row["region"]): find_spot_band(row["band"]) for row in rows}
