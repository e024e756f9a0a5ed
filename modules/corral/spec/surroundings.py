"""What a spec is judged against: its region, the project's catalogue, and for a cluster its base."""

from __future__ import annotations

from dataclasses import dataclass, field

from corral.catalog.project import Catalogue, shipped_catalogue
from corral.spec.base import BaseSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """`base`: None for a base itself, and where a cluster's base is not known; against it nothing is said then."""

    region: str
    catalogue: Catalogue = field(default_factory=shipped_catalogue)
    base: BaseSpec | None = None
