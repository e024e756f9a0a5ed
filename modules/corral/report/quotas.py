"""The quotas that an environment needs, for the eye and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corral.forecast.quotas import QuotaNeed

QUOTA_COLUMNS = ("quota", "code", ">needs", ">a new account has", "for")


def quota_rows(needs: Iterable[QuotaNeed]) -> tuple[tuple[str, ...], ...]:
    """A row for each, under `QUOTA_COLUMNS`; what is more than a new account has is marked with `!`."""
    return tuple(
        (
            need.quota.name,
            need.quota.code,
            f"{'! ' if need.beyond_new else ''}{_amount(need.wanted)} {need.quota.unit}",
            _amount(need.quota.default),
            ", ".join(need.who) or "all of it",
        )
        for need in needs
    )


def to_ask_for(needs: Sequence[QuotaNeed]) -> str:
    """A sentence on what must have been asked for before all of it can start."""
    count = sum(need.beyond_new for need in needs)
    if not count:
        return "A new account has all of it."
    many = "One of them is" if count == 1 else f"{count} of them are"
    return f"{many} (!) more than a new account has: ask AWS early, and `corral check` what yours has."


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
