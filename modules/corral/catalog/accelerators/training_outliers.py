"""Published runs that no formula predicts well, and the reasons. For readers; not used in computations."""

from __future__ import annotations

from functools import cache

from corral.catalog.loader.data_files import read_toml


@cache
def _outliers() -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple((tuple(row["runs"]), row["why"]) for row in read_toml("training_outliers.toml")["outlier"])


def known_reason(run_id: str) -> str | None:
    """Return why the forecast misses this run; None if that has not been investigated."""
    return next((why for runs, why in _outliers() if run_id.startswith(runs)), None)
