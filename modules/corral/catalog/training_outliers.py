"""Published runs that no formula meets, and why: words for people, nothing that is computed with."""

from __future__ import annotations

from functools import cache

from corral.catalog.tables import read_toml


@cache
def _outliers() -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple((tuple(row["runs"]), row["why"]) for row in read_toml("training_outliers.toml")["outlier"])


def known_reason(run_id: str) -> str | None:
    """Why this run is known to be off; None where nobody has looked."""
    return next((why for runs, why in _outliers() if run_id.startswith(runs)), None)
