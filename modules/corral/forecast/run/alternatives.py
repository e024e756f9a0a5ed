"""The instance types and regions to compare a run on, parsed from `--compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.aws.instance_types import InstanceType
from corral.catalog.aws.instance_types_by_accelerator import accelerator_of
from corral.catalog.aws.regions import regions
from corral.catalog.aws.zone_offerings import offering_regions
from corral.catalog.loader.suggestions import did_you_mean, suggestion
from corral.catalog.project_catalog import Catalog
from corral.spec.spec_errors import SpecErrors, SpecProblem

OPTION = "--compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternatives:
    """The types and regions to combine, in the given order."""

    machines: tuple[InstanceType, ...]
    regions: tuple[str, ...]


def parse_alternatives(text: str, machine: InstanceType, region: str, catalog: Catalog) -> Alternatives:
    """Parses e.g. `p4d.24xlarge,p5.48xlarge,us-west-2`. Defaults: the type `machine`, the region `region`.

    Raises SpecErrors with every word that is neither a type nor a region, every type without a forecast, and every type
    that none of the regions offers.
    """
    words = tuple(dict.fromkeys(word for word in map(str.strip, text.split(",")) if word))
    types = _types(catalog)
    named_regions = tuple(word for word in words if word in regions()) or (region,)
    names = tuple(word for word in words if word not in regions())
    wrong = [*_unknown(names, types, catalog), *_not_offered(names, types, named_regions)]
    if not words:
        wrong.append(SpecProblem("is empty", "give types and regions, e.g. p4d.24xlarge,p5.48xlarge,us-west-2"))
    if wrong:
        raise SpecErrors(problem.at(()).in_file(OPTION) for problem in wrong)
    return Alternatives(machines=tuple(types[name] for name in names) or (machine,), regions=named_regions)


def is_offered(machine: InstanceType, region: str) -> bool:
    """True if the catalog's snapshot has this type in the region, or lacks the type, as the project's own."""
    known = offering_regions(machine.name)
    return region in known or not known


def _types(catalog: Catalog) -> Mapping[str, InstanceType]:
    """The types with a run forecast."""
    return {name: one for name, one in catalog.instance_types.items() if one.accelerator and accelerator_of(one)}


def _unknown(names: tuple[str, ...], types: Mapping[str, InstanceType], catalog: Catalog) -> Iterator[SpecProblem]:
    for name in names:
        if name in types:
            continue
        if name not in catalog.instance_types:
            hint = did_you_mean(name, [*types, *regions()]) or suggestion(name, types if "." in name else regions())
            yield SpecProblem(f"{name!r} is neither a type with accelerators nor a region in the catalog", hint)
        elif catalog.instance_types[name].accelerator:
            yield SpecProblem(f"no known figures for the accelerators of {name!r}", "remove it")
        else:
            yield SpecProblem(f"{name!r} has no accelerators", "remove it")


def _not_offered(
    names: tuple[str, ...], types: Mapping[str, InstanceType], named_regions: tuple[str, ...]
) -> Iterator[SpecProblem]:
    for name in names:
        if name in types and not any(is_offered(types[name], region) for region in named_regions):
            elsewhere = ", ".join(offering_regions(name))
            chosen = " or ".join(named_regions)
            yield SpecProblem(f"{name!r} is not offered in {chosen} by the catalog's snapshot", f"it is in {elsewhere}")
