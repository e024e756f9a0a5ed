"""Orphaned and retained resources, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.price_source import PriceList
from corral.inventory.cleanup_report import CleanupFindings
from corral.inventory.orphans import Orphan
from corral.inventory.resource_cost import sum_per_month, usd_per_month
from corral.inventory.resources import AwsResource
from corral.report.formatting import summed, usd
from corral.report.plan.plan_json import Document, sums_document, usd_document
from corral.report.tables import heading, lines, table


def cleanup_view(found: CleanupFindings, prices: PriceList) -> Iterator[RenderableType]:
    """Orphans with their cost, resources that may belong to another project, and retained data."""
    yield heading(f"Orphans in {found.region}", "" if found.orphans else "none")
    yield lines([f"compared with the stacks in {found.backend}"])
    yield from _orphans(found.orphans, prices)
    if found.foreign:
        yield heading("Of other environments", "which this project does not declare")
        yield from _orphans(found.foreign, prices)
        yield lines(["They may be in use. Only a cleanup of their own project deletes them."])
    if found.retained:
        yield heading("Retained data", "of bases that are not up; `corral down ENV --delete-data BASE` deletes it")
        rows = [(one.base or "", one.kind.value, _cost(one, prices), one.id) for one in found.retained]
        yield table(("base", "kind", ">USD/month", "id"), rows)


def cleanup_document(found: Sequence[CleanupFindings], prices_of: Callable[[str], PriceList]) -> Document:
    """The document of `corral cleanup --json`: one entry per region."""
    return {"schema": "corral.cleanup/2", "regions": [_region(one, prices_of(one.region)) for one in found]}


def _region(found: CleanupFindings, prices: PriceList) -> Document:
    return {
        "region": found.region,
        "backend": found.backend,
        "orphans": [_document(one.resource, one.reason, prices) for one in found.orphans],
        "foreign": [_document(one.resource, one.reason, prices) for one in found.foreign],
        "retained": [_document(one, None, prices) for one in found.retained],
        **sums_document({"usd_per_month": sum_per_month((one.resource for one in found.orphans), prices)}),
    }


def _orphans(found: Sequence[Orphan], prices: PriceList) -> Iterator[RenderableType]:
    for reason in dict.fromkeys(one.reason for one in found):
        group = [one for one in found if one.reason == reason]
        rows = [
            (one.resource.kind.value, _name(one.resource), _cost(one.resource, prices), one.resource.id)
            for one in group
        ]
        yield Text()
        yield lines([f"{reason}:"])
        total_row = (f"total: {len(group)}", "", _total(group, prices), "")
        yield table(("", "name", ">USD/month", "id"), rows, total=total_row)


def _name(resource: AwsResource) -> str:
    """The name; empty if it equals the id."""
    return "" if resource.name == resource.id else resource.name


def _cost(resource: AwsResource, prices: PriceList) -> str:
    return _shown(usd_per_month(resource, prices))


def _shown(amount: Usd | None) -> str:
    """The amount; `free` if it rounds to nothing."""
    return "free" if amount is not None and not float(f"{amount.high:.4f}") else usd(amount)


def _total(found: Sequence[Orphan], prices: PriceList) -> str:
    """The sum of the column; the known minimum if a price is unknown."""
    amount = sum_per_month((one.resource for one in found), prices)
    return summed(amount) if amount.missing else _shown(amount.usd)


def _document(resource: AwsResource, reason: str | None, prices: PriceList) -> Document:
    return {
        "kind": resource.kind.value,
        "id": resource.id,
        "name": resource.name,
        "base": resource.base,
        "cluster": resource.cluster,
        "state": resource.state,
        "reason": reason,
        "usd_per_month": usd_document(usd_per_month(resource, prices)),
    }
