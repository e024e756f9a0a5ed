"""What a spec is validated against: its region, the project's catalog, and for a cluster its base."""

from __future__ import annotations

from dataclasses import dataclass, field

from corral.catalog.project_catalog import Catalog, shipped_catalog
from corral.spec.models.base import BaseSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationContext:
    """`base`: None for a base itself, or if a cluster's base is unknown; skips checks against the base."""

    region: str
    catalog: Catalog = field(default_factory=shipped_catalog)
    base: BaseSpec | None = None
