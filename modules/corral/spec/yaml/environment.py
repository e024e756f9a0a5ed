"""An environment as its files declare it: what `stack_files` reads, and `run_files` validates against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from corral.catalog.project_catalog import Catalog
from corral.spec.models.base import BaseSpec
from corral.spec.models.cluster import ClusterSpec

if TYPE_CHECKING:  # most environments declare no run
    from corral.spec.models.run import RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A cluster, its base, the catalog of their project, and the training runs that the cluster declares, by name."""

    base: BaseSpec
    cluster: ClusterSpec
    catalog: Catalog
    runs: Mapping[str, RunSpec] = field(default_factory=dict)
