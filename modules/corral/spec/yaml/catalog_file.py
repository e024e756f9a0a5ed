"""A project's own `catalog.toml`: instance types and prices that add to or replace those that corral ships."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from corral.catalog.aws.instance_types import instance_type_from_row, instance_types
from corral.catalog.aws.prices import CapacityBlockPrice, InstancePrice, Trust
from corral.catalog.project_catalog import FILE_NAME, Catalog, shipped_catalog
from corral.spec.loader import try_parse_model
from corral.spec.spec_errors import SpecError, SpecErrors

if TYPE_CHECKING:
    from corral.spec.models.catalog_rows import PriceRow


def project_catalog(project_dir: Path) -> Catalog:
    """Read the catalog of the project in this directory. Raises SpecErrors with every mistake in its file."""
    try:
        text = (project_dir / FILE_NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return shipped_catalog()
    except OSError as error:
        raise _whole_file(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _whole_file("is not UTF-8 text") from None
    return parse_catalog(text)


def parse_catalog(text: str) -> Catalog:
    """Parse a catalog file's text and add the shipped catalog. Raises SpecErrors with every mistake."""
    from corral.spec.models.catalog_rows import CatalogFile
    from corral.spec.rules import catalog_rules  # here: few projects have such a file, and imports slow every plan

    try:
        content = json.loads(json.dumps(tomllib.loads(text), default=str))  # dates as text
    except tomllib.TOMLDecodeError as error:
        raise _whole_file(f"is not TOML: {error}") from None
    file, errors = try_parse_model(CatalogFile, content, FILE_NAME, catalog_rules.check)
    if errors or file is None:
        raise SpecErrors(errors)
    shipped = instance_types()
    own = {
        name: instance_type_from_row(name, row.model_dump(exclude_none=True), FILE_NAME)
        for name, row in file.instances.items()
    }
    types = {**shipped, **own}
    priced = {(name, region): row for name, rows in file.prices.items() for region, row in rows.items()}
    return Catalog(
        instance_types=MappingProxyType({name: types[name] for name in sorted(types)}),
        replaced=tuple(sorted(set(own) & set(shipped))),
        own_prices=MappingProxyType({at: _price(row) for at, row in priced.items() if row.on_demand or row.spot_min}),
        own_capacity_block_prices=MappingProxyType(
            {at: _capacity_block_price(row.capacity_block, row) for at, row in priced.items() if row.capacity_block}
        ),
    )


def _price(row: PriceRow) -> InstancePrice:
    return InstancePrice(
        on_demand_usd_per_hour=row.on_demand,
        spot_min_usd_per_hour=row.spot_min,
        spot_max_usd_per_hour=row.spot_max,
        as_of=str(row.as_of),
        source=row.source or FILE_NAME,
        trust=Trust.USER,
    )


def _capacity_block_price(usd_per_hour: float, row: PriceRow) -> CapacityBlockPrice:
    return CapacityBlockPrice(
        usd_per_hour=usd_per_hour, as_of=str(row.as_of), source=row.source or FILE_NAME, trust=Trust.USER
    )


def _whole_file(message: str) -> SpecErrors:
    return SpecErrors([SpecError(file=FILE_NAME, path="", message=message)])
