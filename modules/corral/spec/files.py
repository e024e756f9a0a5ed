"""The files in which bases and clusters are declared: `stacks/{base,cluster}/Pulumi.<name>.yaml`.

They are Pulumi's own stack files; corral reads three keys of them and leaves the rest alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from corral.catalog.names import suggestion
from corral.catalog.project import Catalogue, project_catalogue
from corral.model.stack_files import stack_names
from corral.spec.addresses import parse_address
from corral.spec.base import BaseSpec
from corral.spec.cluster import ClusterSpec
from corral.spec.errors import SpecError, SpecErrors
from corral.spec.heads import HeadPlace, meeting
from corral.spec.parse import Outcome, read_base_wishes, read_cluster_wishes
from corral.spec.problems import shown
from corral.spec.surroundings import Surroundings
from corral.spec.yaml_parts import UNREADABLE, Torn
from corral.spec.yaml_text import read_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A cluster and the base that it stands on, and the catalogue of their project."""

    base: BaseSpec
    cluster: ClusterSpec
    catalogue: Catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class _StackFile:
    """What corral reads of a stack file; of what cannot be read, `errors` tell, and the region is not known."""

    name: str
    where: str
    region: str | None
    spec: Mapping[str, Any]
    errors: tuple[SpecError, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether everything in the file could be read."""
        return not self.errors


def environments(project_dir: Path) -> tuple[str, ...]:
    """The names of the clusters that this project declares, sorted. Raises SpecErrors where it is no project."""
    return stack_names(_folder(project_dir, "cluster"))


def read_base(project_dir: Path, name: str) -> BaseSpec:
    """The base of this name. Raises SpecErrors."""
    return _read_base(project_dir, name, project_catalogue(project_dir)).checked()


def read_environment(project_dir: Path, env: str) -> Environment:
    """The cluster of this name and its base. Raises SpecErrors with every mistake in both files.

    Raises CatalogueErrors with every mistake in the project's catalogue, without which neither file can be judged.
    """
    catalogue = project_catalogue(project_dir)
    try:
        file = _read_file(project_dir, "cluster", env)
    except SpecErrors as error:
        raise SpecErrors((*_errors_beside(project_dir, env, catalogue), *error.errors)) from None
    base = _base_of(project_dir, file, catalogue)
    # Against zones that are themselves in doubt nothing can be said.
    known = None if any(error.path.startswith("network") for error in base.errors) else base.spec
    around = Surroundings(region=_region(file, base.spec), catalogue=catalogue, base=known)
    cluster = read_cluster_wishes(file.spec, name=env, where=file.where, around=around)
    errors = (*base.errors, *file.errors, *_about(file, cluster.errors))
    if errors or base.spec is None or cluster.spec is None:
        raise SpecErrors(errors)
    if meeting_heads := _meeting_heads(project_dir, cluster.spec, base.spec):
        raise SpecErrors(meeting_heads)
    return Environment(base=base.spec, cluster=cluster.spec, catalogue=catalogue)


def _meeting_heads(project_dir: Path, cluster: ClusterSpec, base: BaseSpec) -> tuple[SpecError, ...]:
    """The mistake that another cluster of this project, on the same base, has the same address for its head."""
    first = base.network.zone_names[0]
    others = (name for name in environments(project_dir) if name != cluster.name)
    found = (place for name in others if (place := _head_place(project_dir, name, first)))
    places = (place for place in found if place.address or not base.network.adopt)  # nothing is kept in adopted subnets
    own = HeadPlace(cluster=cluster.name, base=base.name, zone=cluster.head.zone or first, address=cluster.head.address)
    other = meeting(own, places)
    if other is None:
        return ()
    message = (
        f"the head would have the address of the head of {other.cluster!r}, on the same base {base.name!r} - set"
        f" head.address for the one that is not up yet, here or in stacks/cluster/Pulumi.{other.cluster}.yaml"
    )
    return (SpecError(file=cluster.file, path="head.address", message=message),)


def _head_place(project_dir: Path, name: str, first_zone: str) -> HeadPlace | None:
    """Where the head of this cluster is to be on its base; None where its file does not say it, being wrong."""
    try:
        file = _read_file(project_dir, "cluster", name)
        if not file.is_complete:
            return None
        spec, head = file.spec, file.spec.get("head") or {}
        zone, address, base = head.get("zone"), head.get("address"), spec.get("base") or name
        return HeadPlace(
            cluster=name,
            base=str(base),
            zone=first_zone if zone is None else str(zone),
            address=None if address is None else parse_address(address),
        )
    except (SpecErrors, AttributeError, PydanticCustomError):
        return None


def _errors_beside(project_dir: Path, env: str, catalogue: Catalogue) -> tuple[SpecError, ...]:
    """What is wrong with the base of this name, if there is one, while its cluster's file cannot be understood."""
    folder = project_dir / "stacks" / "base"
    is_there = folder.is_dir() and env in stack_names(folder)
    return _read_base(project_dir, env, catalogue).errors if is_there else ()


def _base_of(project_dir: Path, cluster: _StackFile, catalogue: Catalogue) -> Outcome[BaseSpec]:
    """The cluster's base; where there is none of this name, that is a mistake in the cluster's file."""
    name = cluster.spec.get("base", cluster.name)
    if not isinstance(name, str):
        return Outcome(errors=())
    if isinstance(cluster.spec, Torn) and "base" not in cluster.spec:  # it may be named where nobody could read it
        return Outcome(errors=_errors_beside(project_dir, name, catalogue))
    known = stack_names(_folder(project_dir, "base"))
    if name in known:
        return _read_base(project_dir, name, catalogue)
    message = f"there is no base {name!r} - {suggestion(name, known) if known else 'there is none yet'}"
    return Outcome(errors=(SpecError(file=cluster.where, path="base", message=message),))


def _region(file: _StackFile, base: BaseSpec | None) -> str:
    """The region of the file; where it cannot be read its base's, or none that is known."""
    return (base.region if base else "") if file.region is None else file.region


def _about(file: _StackFile, errors: tuple[SpecError, ...]) -> tuple[SpecError, ...]:
    """The errors, without those about a region that nobody could read."""
    return tuple(error for error in errors if file.region is not None or error.path != "aws:region")


def _read_base(project_dir: Path, name: str, catalogue: Catalogue) -> Outcome[BaseSpec]:
    try:
        file = _read_file(project_dir, "base", name)
    except SpecErrors as error:
        return Outcome(errors=error.errors)
    around = Surroundings(region=_region(file, None), catalogue=catalogue)
    found = read_base_wishes(file.spec, name=name, where=file.where, around=around)
    return Outcome(spec=found.spec, errors=(*file.errors, *_about(file, found.errors)))


def _read_file(project_dir: Path, kind: str, name: str) -> _StackFile:
    folder, where = _folder(project_dir, kind), f"stacks/{kind}/Pulumi.{name}.yaml"
    known = stack_names(folder)
    if name not in known:
        what = "environment" if kind == "cluster" else "base"
        raise _error(
            where, f"there is no {what} {name!r} - {suggestion(name, known) if known else 'there is none yet'}"
        )
    try:
        document = read_document((folder / f"Pulumi.{name}.yaml").read_bytes())
    except OSError as error:
        raise _error(where, f"cannot be read: {error.strerror}") from None
    errors = tuple(SpecError(file=where, path="", message=str(mistake)) for mistake in document.mistakes)
    try:
        return replace(_stack_file(document.value, kind, name, where), errors=errors)
    except SpecErrors as error:
        raise SpecErrors((*errors, *error.errors)) from None


def _stack_file(value: Any, kind: str, name: str, where: str) -> _StackFile:
    content = _fields(value, where, "", "config")
    settings = _fields(_field(content, "config"), where, "config", "aws:region and a spec")
    key = f"corral-{kind}:spec"
    if key not in settings and not isinstance(settings, Torn):
        raise _error(where, _missing_spec(key, settings), "config")
    region = _field(settings, "aws:region")
    return _StackFile(
        name=name,
        where=where,
        region=None if region is UNREADABLE else "" if region is None else str(region),
        spec=_fields(_field(settings, key), where, key, "fields"),
    )


def _field(fields: Mapping[str, Any], key: str) -> Any:
    """What stands under this key; UNREADABLE also where it may stand in what could not be read."""
    return fields.get(key, UNREADABLE if isinstance(fields, Torn) else None)


def _missing_spec(key: str, settings: Mapping[str, Any]) -> str:
    other = next((name for name in settings if name == "spec" or name.endswith(":spec")), None)
    return f"{key} is missing - " + (f"it seems to stand under {other!r}" if other else "see the shipped dev")


def _fields(value: Any, where: str, path: str, wanted: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    if value is UNREADABLE:
        return Torn()
    if value is None:
        raise _error(where, f"is empty - it needs {wanted}", path)
    raise _error(where, f"expected {wanted}, found {shown(value)}", path)


def _folder(project_dir: Path, kind: str) -> Path:
    folder = project_dir / "stacks" / kind
    if not folder.is_dir():
        raise _error(
            str(project_dir),
            f"is no corral project: it has no stacks/{kind} - go to one, or name it with --project DIR",
        )
    return folder


def _error(where: str, message: str, path: str = "") -> SpecErrors:
    return SpecErrors([SpecError(file=where, path=path, message=message)])
