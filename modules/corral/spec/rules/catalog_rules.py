"""Rules about a project's own catalog.toml: which figures must agree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.regions import regions
from corral.catalog.loader.suggestions import suggestion
from corral.spec.models.catalog_rows import AcceleratorRow, CatalogFile, InstanceRow, PriceRow
from corral.spec.spec_errors import Loc, SpecFinding

_TYPE_NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_SLURM_TYPE = re.compile(r"[a-z0-9_.-]+")  # no comma or colon: they end the name in slurm.conf and in --gres=gpu:h100:8
_ON_CARD_0 = 2  # interfaces: the one with IP, and EFA-only
_AMOUNTS = ("on_demand", "spot_min", "spot_max", "capacity_block")


def check(file: CatalogFile) -> Iterator[SpecFinding]:
    """Yield findings about this file. Its prices may be for its own types and for shipped ones."""
    for name, row in file.instances.items():
        if not _TYPE_NAME.fullmatch(name):
            yield SpecFinding(("instances", name), f"invalid value {name!r}; write it like p5.48xlarge")
        yield from _check_instance(("instances", name), row)
    for name, rows in file.prices.items():
        if name not in file.instances and name not in instance_types():
            yield SpecFinding(("prices", name), "is not in the catalog", "add it under instances")
        for region, price in rows.items():
            yield from _check_price(("prices", name, region), region, price)


def _check_instance(loc: Loc, row: InstanceRow) -> Iterator[SpecFinding]:
    if row.vcpus != row.cores * row.threads_per_core:
        message = f"{row.vcpus} is not cores {row.cores} x threads_per_core {row.threads_per_core}"
        yield SpecFinding((*loc, "vcpus"), message)
    if row.cores % row.sockets:
        yield SpecFinding((*loc, "sockets"), f"{row.cores} cores cannot be divided among {row.sockets} sockets")
    yield from _check_baseline(loc, "network", row.network_gbps, row.network_baseline_gbps)
    yield from _check_baseline(loc, "ebs", row.ebs_gbps, row.ebs_baseline_gbps)
    yield from _check_cards(loc, row)
    if row.accelerator:
        yield from _check_accelerator((*loc, "accelerator"), row.accelerator)
    for number, market in enumerate(row.markets):
        if market in row.markets[:number]:
            yield SpecFinding((*loc, "markets", number), f"{market!r} is listed twice", "keep one")


def _check_baseline(loc: Loc, kind: str, peak: float | None, baseline: float | None) -> Iterator[SpecFinding]:
    if baseline and not peak:
        yield SpecFinding((*loc, f"{kind}_gbps"), "is missing", f"{kind}_baseline_gbps requires it")
    elif baseline and peak and baseline > peak:
        yield SpecFinding((*loc, f"{kind}_baseline_gbps"), f"{baseline:g} is more than {kind}_gbps {peak:g}")


def _check_cards(loc: Loc, row: InstanceRow) -> Iterator[SpecFinding]:
    following = 0
    for number, cards in enumerate(row.network_cards):
        if cards.first != following or cards.last < cards.first:
            there = f"has cards {cards.first} to {cards.last}"
            yield SpecFinding((*loc, "network_cards", number), there, f"list the cards in order, next card {following}")
            return
        following = cards.last + 1
    if "interface" not in row.network_cards[0].interface_types:
        yield SpecFinding(
            (*loc, "network_cards", 0, "interface_types"), "lacks 'interface'", "card 0 always carries IP"
        )
    if "efa-only" in row.network_cards[0].interface_types and row.network_cards[0].maximum_interfaces < _ON_CARD_0:
        too_few = f"{row.network_cards[0].maximum_interfaces} is too few"
        yield SpecFinding((*loc, "network_cards", 0, "maximum_interfaces"), too_few, "card 0 carries IP and EFA-only")
    with_efa = [cards for cards in row.network_cards if {"efa", "efa-only"} & set(cards.interface_types)]
    speaking = sum(cards.last - cards.first + 1 for cards in with_efa)
    if row.efa_maximum > speaking or (speaking and not row.efa_maximum):
        yield SpecFinding((*loc, "efa_maximum"), f"{row.efa_maximum} does not fit {speaking} network cards with EFA")


def _check_accelerator(loc: Loc, row: AcceleratorRow) -> Iterator[SpecFinding]:
    for given, other in (("link", "link_gb_per_s"), ("link_gb_per_s", "link")):
        if getattr(row, given) and not getattr(row, other):
            yield SpecFinding((*loc, other), "is missing", f"{given} requires it")
    if row.name is not None and not _SLURM_TYPE.fullmatch(row.name):
        yield SpecFinding((*loc, "name"), f"invalid value {row.name!r}; write it like h100")
    if row.name is None and not _SLURM_TYPE.fullmatch(row.product.lower()):  # the default name
        yield SpecFinding((*loc, "name"), "is missing", f"Slurm does not accept the name {row.product.lower()!r}")


def _check_price(loc: Loc, region: str, row: PriceRow) -> Iterator[SpecFinding]:
    if region not in regions():
        yield SpecFinding(loc, f"invalid value {region!r}; {suggestion(region, regions())}")
    if not any(getattr(row, amount) for amount in _AMOUNTS):
        yield SpecFinding(loc, "has no price", f"set one of {', '.join(_AMOUNTS)}")
    for given, other in (("spot_min", "spot_max"), ("spot_max", "spot_min")):
        if getattr(row, given) and not getattr(row, other):
            yield SpecFinding((*loc, other), "is missing", f"{given} requires it; both may be equal")
    if row.spot_min and row.spot_max and row.spot_min > row.spot_max:
        yield SpecFinding((*loc, "spot_min"), f"{row.spot_min:g} is more than spot_max {row.spot_max:g}")
