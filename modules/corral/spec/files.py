"""The files in which bases and clusters are declared: `stacks/{base,cluster}/Pulumi.<name>.yaml`.

They are Pulumi's own stack files; corral reads three keys of them and leaves the rest alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from corral.spec.yaml_text import YamlError, read_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A cluster and the base that it stands on, and the catalogue of their project."""

    base: BaseSpec
    cluster: ClusterSpec
    catalogue: Catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class _StackFile:
    """What corral reads of a stack file."""

    name: str
    where: str
    region: str
    spec: Mapping[str, Any]


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
    base_name = file.spec.get("base", env)
    base: Outcome[BaseSpec] = (
        _base_of(project_dir, file, base_name, catalogue) if isinstance(base_name, str) else Outcome(errors=())
    )
    # Against zones that are themselves in doubt nothing can be said.
    known = None if any(error.path.startswith("network") for error in base.errors) else base.spec
    around = Surroundings(region=file.region, catalogue=catalogue, base=known)
    cluster = read_cluster_wishes(file.spec, name=env, where=file.where, around=around)
    errors = (*base.errors, *cluster.errors)
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
        spec = _read_file(project_dir, "cluster", name).spec
        head = spec.get("head") or {}
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


def _base_of(project_dir: Path, cluster: _StackFile, name: str, catalogue: Catalogue) -> Outcome[BaseSpec]:
    """The cluster's base; where there is none of this name, that is a mistake in the cluster's file."""
    known = stack_names(_folder(project_dir, "base"))
    if name in known:
        return _read_base(project_dir, name, catalogue)
    message = f"there is no base {name!r} - {suggestion(name, known) if known else 'there is none yet'}"
    return Outcome(errors=(SpecError(file=cluster.where, path="base", message=message),))


def _read_base(project_dir: Path, name: str, catalogue: Catalogue) -> Outcome[BaseSpec]:
    try:
        file = _read_file(project_dir, "base", name)
    except SpecErrors as error:
        return Outcome(errors=error.errors)
    around = Surroundings(region=file.region, catalogue=catalogue)
    return read_base_wishes(file.spec, name=name, where=file.where, around=around)


def _read_file(project_dir: Path, kind: str, name: str) -> _StackFile:
    folder, where = _folder(project_dir, kind), f"stacks/{kind}/Pulumi.{name}.yaml"
    known = stack_names(folder)
    if name not in known:
        what = "environment" if kind == "cluster" else "base"
        raise _error(
            where, f"there is no {what} {name!r} - {suggestion(name, known) if known else 'there is none yet'}"
        )
    try:
        content = read_yaml((folder / f"Pulumi.{name}.yaml").read_bytes())
    except YamlError as error:
        raise _error(where, str(error)) from None
    except OSError as error:
        raise _error(where, f"cannot be read: {error.strerror}") from None
    return _stack_file(content, kind, name, where)


def _stack_file(content: Any, kind: str, name: str, where: str) -> _StackFile:
    config = _fields(content, where, "", "config")
    settings = _fields(config.get("config"), where, "config", "aws:region and a spec")
    key = f"corral-{kind}:spec"
    if key not in settings:
        raise _error(where, _missing_spec(key, settings), "config")
    region = settings.get("aws:region")
    spec = _fields(settings[key], where, key, "fields")
    return _StackFile(name=name, where=where, region="" if region is None else str(region), spec=spec)


def _missing_spec(key: str, settings: Mapping[str, Any]) -> str:
    other = next((name for name in settings if name == "spec" or name.endswith(":spec")), None)
    return f"{key} is missing - " + (f"it seems to stand under {other!r}" if other else "see the shipped dev")


def _fields(value: Any, where: str, path: str, wanted: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
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
