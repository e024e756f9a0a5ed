"""Monthly spot interruption rates by region and type: the bands of the Spot Instance Advisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from corral.catalog.loader.data_files import read_csv
from corral.catalog.loader.suggestions import UnknownName

ADVISOR = "AWS Spot Instance Advisor"
LAST_BAND_END = 0.5  # AWS states no upper end for the last band; half of all instances is an assumption


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotBand:
    """The fraction of spot instances that AWS reclaimed in a month. `assumed`: its upper end is an assumption."""

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
    SpotBand(label=">20%", low=0.20, high=LAST_BAND_END, assumed=True),
)
ANY_BAND = SpotBand(label="any band", low=BANDS[0].low, high=LAST_BAND_END, assumed=True)


def find_spot_band(label: str) -> SpotBand:
    """Return the band of this label (`5-10%`). Raises UnknownName."""
    for band in BANDS:
        if band.label == label:
            return band
    raise UnknownName("band of the Spot Instance Advisor", label, [band.label for band in BANDS])


def published_spot_band(instance_type: str, region: str) -> SpotBand | None:
    """Return the band of this type in this region; None if it is not in the catalog."""
    return _published().get((instance_type, region))


@cache
def _published() -> Mapping[tuple[str, str], SpotBand]:
    rows = read_csv("spot_bands.csv")
    return {(row["instance_type"], row["region"]): find_spot_band(row["band"]) for row in rows}
