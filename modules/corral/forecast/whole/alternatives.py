"""Other machines and regions that a run is to be compared on, from the words of `--compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.accelerators import accelerator_of
from corral.catalog.instances import InstanceType
from corral.catalog.names import did_you_mean, suggestion
from corral.catalog.offerings import offering_regions
from corral.catalog.project import Catalogue
from corral.catalog.regions import regions
from corral.spec.errors import SpecError, SpecErrors

OPTION = "--compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternatives:
    """Types and regions, each with each, in the order in which they were named."""

    machines: tuple[InstanceType, ...]
    regions: tuple[str, ...]


def parse_alternatives(text: str, machine: InstanceType, region: str, catalogue: Catalogue) -> Alternatives:
    """What `p4d.24xlarge,p5.48xlarge,us-west-2` means. Without a type it is `machine`, without a region `region`.

    A word is a region by its name. Raises SpecErrors with every word that is neither, every type that no run can be
    forecast on, and every type that none of the regions offers.
    """
    words = tuple(dict.fromkeys(word for word in map(str.strip, text.split(",")) if word))
    types = _types(catalogue)
    places = tuple(word for word in words if word in regions()) or (region,)
    names = tuple(word for word in words if word not in regions())
    wrong = [*_unknown(names, types, catalogue), *_not_offered(names, types, places)]
    if not words:
        wrong.append("is empty - name types and regions, such as p4d.24xlarge,p5.48xlarge,us-west-2")
    if wrong:
        raise SpecErrors(SpecError(file=OPTION, path="", message=message) for message in wrong)
    return Alternatives(machines=tuple(types[name] for name in names) or (machine,), regions=places)


def is_offered(machine: InstanceType, region: str) -> bool:
    """Whether the region had this type when last looked; true of the project's own, of which no snapshot knows."""
    known = offering_regions(machine.name)
    return region in known or not known


def _types(catalogue: Catalogue) -> Mapping[str, InstanceType]:
    """The types that a run can be forecast on."""
    return {name: one for name, one in catalogue.instance_types.items() if one.accelerator and accelerator_of(one)}


def _unknown(names: tuple[str, ...], types: Mapping[str, InstanceType], catalogue: Catalogue) -> Iterator[str]:
    for name in names:
        if name in types:
            continue
        if name not in catalogue.instance_types:
            hint = did_you_mean(name, [*types, *regions()]) or suggestion(name, types if "." in name else regions())
            yield f"{name!r} is neither a type with accelerators nor a region of the catalogue - {hint}"
        elif catalogue.instance_types[name].accelerator:
            yield f"no figures of the accelerators of {name!r} are known - leave it out"
        else:
            yield f"{name!r} has no accelerators - leave it out"


def _not_offered(names: tuple[str, ...], types: Mapping[str, InstanceType], places: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if name in types and not any(is_offered(types[name], place) for place in places):
            there = ", ".join(offering_regions(name))
            yield f"{name!r} was not offered in {' or '.join(places)} when last looked - it was in {there}"
