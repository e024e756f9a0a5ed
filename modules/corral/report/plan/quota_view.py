"""The quotas that an environment needs, as a table and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corral.forecast.required_quotas import QuotaNeed

QUOTA_COLUMNS = ("quota", "code", ">needed", ">new account", "for")


def quota_rows(needs: Iterable[QuotaNeed]) -> tuple[tuple[str, ...], ...]:
    """A row per quota, under `QUOTA_COLUMNS`; `!` marks what exceeds the default of a new account."""
    return tuple(
        (
            need.quota.name,
            need.quota.code,
            f"{'! ' if need.beyond_new else ''}{_amount(need.wanted)} {need.quota.unit}",
            _amount(need.quota.default),
            ", ".join(need.who) or "environment",
        )
        for need in needs
    )


def quota_requests(needs: Sequence[QuotaNeed]) -> str:
    """A sentence that names the quota increases to request before everything can start."""
    count = sum(need.beyond_new for need in needs)
    if not count:
        return "The defaults of a new account suffice."
    many = "1 exceeds" if count == 1 else f"{count} exceed"
    return f"{many} (!) the default of a new account: request increases early; `corral check` shows your quotas."


def quotas_needed_document(needs: Iterable[QuotaNeed]) -> list[Mapping[str, Any]]:
    """The list `quotas` of `corral plan --json`."""
    return [
        {
            "service": need.quota.service,
            "code": need.quota.code,
            "name": need.quota.name,
            "market": need.quota.market,
            "needed": need.wanted,
            "unit": need.quota.unit,
            "new_account": need.quota.default,
            "for": list(need.who),
        }
        for need in needs
    ]


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
