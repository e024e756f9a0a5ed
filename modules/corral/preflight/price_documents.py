"""Products of the Price List API, as JSON in the form of aws_v1, to prices. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_ON_DEMAND = "OnDemand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A price of the list: USD for one unit, and the day on which the list was published."""

    usd: float
    published: str


def listed(products: Iterable[str], *, usage: str, unit: str) -> Listed | None:
    """The one price of these products on demand, of this usage type and unit; None where there is none, or several.

    Usage types begin with a region's own prefix. Of a price by steps the first one.
    """
    found = {one for text in products for one in _prices(json.loads(text), usage, unit)}
    return found.pop() if len(found) == 1 else None


def _prices(document: Mapping[str, Any], usage: str, unit: str) -> Iterator[Listed]:
    attributes = document["product"]["attributes"]
    named = str(attributes.get("usagetype", ""))
    if named != usage and not named.endswith(f"-{usage}"):
        return
    if attributes.get("marketoption", _ON_DEMAND) != _ON_DEMAND:
        return
    for term in document["terms"].get(_ON_DEMAND, {}).values():
        for step in term["priceDimensions"].values():
            if step["unit"] == unit and float(step.get("beginRange", 0)) == 0 and "USD" in step["pricePerUnit"]:
                published = str(document.get("publicationDate") or term.get("effectiveDate", ""))[:10]
                yield Listed(usd=float(step["pricePerUnit"]["USD"]), published=published or "no date")
