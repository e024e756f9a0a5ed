"""Checks before any resource is created, shared by `corral up` and plain `pulumi up`.

A rule that needs only the project's files, or a fact that both can look up, belongs here. Nothing here calls AWS.
docs/cli.md lists the additional checks of `corral up`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from corral import render
from corral.forecast.cost.budget_limits import hourly_limit
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.pool_capacity import pool_counts
from corral.forecast.declared_runs import with_forecasts
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.stack_files import read_environment


class AdmissionError(Exception):
    """A valid environment that may not be deployed: a sentence, then hints on further lines."""

    def __init__(self, sentence: str, hints: Sequence[str] = ()) -> None:
        super().__init__("\n".join([sentence, *(f"  {hint}" for hint in hints)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPlans:
    """Both plans of an environment, and the text of every file of its cluster by path."""

    base: BasePlan
    cluster: ClusterPlan
    files: Mapping[str, str]


def admit(project_dir: Path, name: str, config: Mapping[str, Any] | None = None) -> Environment:
    """Return the environment of this name after checking it against the project's files.

    `config`: the cluster's config in a Pulumi program; None reads its file.
    Raises SpecErrors for errors in the files, AdmissionError for an exceeded limit.
    """
    environment = read_environment(project_dir, name, config)
    refuse_overspending(environment)
    return environment


def refuse_overspending(environment: Environment) -> None:
    """Raise AdmissionError if the cost by the catalog's prices exceeds the spec's usd_per_hour_max."""
    spec = environment.cluster
    if spec.usd_per_hour_max is None:
        return
    base = plan_base(environment.base)
    cluster = plan_cluster(spec, base, catalog=environment.catalog)
    prices = catalog_prices(cluster.region, environment.catalog)
    limit = hourly_limit(spec, cluster, forecast_cost(base, cluster, prices, pool_counts(spec)))
    if limit and limit.refusal:
        raise AdmissionError(f"{limit.refusal}: nothing was changed", (f"corral plan {spec.name}",))


def plan_admitted(environment: Environment, image_profile: str | None) -> EnvironmentPlans:
    """Return the plans and files of an environment. `image_profile` replaces every image, as in the box.

    Raises ReleaseError for keys that the cluster's Slurm lacks, and for a Slurm that is too old; SpecErrors for a
    declared run whose batch fits no layout.
    """
    base = plan_base(environment.base)
    cluster = plan_cluster(environment.cluster, base, catalog=environment.catalog, image_profile=image_profile)
    cluster = with_forecasts(cluster, environment)
    prices = catalog_prices(cluster.region, environment.catalog)
    return EnvironmentPlans(base=base, cluster=cluster, files=render.cluster_files(cluster, prices))


def refuse_expired(cluster: str, end: datetime | None, now: datetime, account_option: str = "") -> None:
    """Raise AdmissionError if this cluster has expired: its head shuts down, and a new one would too.

    `end`: None for a cluster that is not up. `account_option`: what command lines end with, as `engine.Stack` has it.
    """
    if end is None or end > now:
        return
    over = f"it expired at {end:%Y-%m-%d %H:%M} UTC, and its head shuts down: nothing was changed"
    named = f"{cluster}{account_option}"
    later = f"to continue: corral extend {cluster} 4h{account_option}, then corral up {named}"
    raise AdmissionError(f"cluster {cluster}: {over}", (later, f"to delete it: corral down {named}"))
