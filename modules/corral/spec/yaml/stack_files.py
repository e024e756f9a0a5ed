"""The files that declare bases and clusters: `stacks/{base,cluster}/Pulumi.<name>.yaml`.

They are Pulumi's own stack files; corral reads three of their keys. Commands and Pulumi programs both read specs here,
so they report the same mistakes. A program passes the config that it gets from Pulumi, which may hold more than the
file (`pulumi up --config`, an ESC environment).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

from corral.catalog.loader.suggestions import suggestion
from corral.catalog.project_catalog import Catalog
from corral.model.pulumi_files import stack_names
from corral.spec.loader import ParseResult, try_parse_base, try_parse_cluster
from corral.spec.models.addresses import parse_address
from corral.spec.models.base import BaseSpec
from corral.spec.models.cluster import ClusterSpec
from corral.spec.pydantic_messages import format_value
from corral.spec.rules.head_address_conflict import DeclaredHead, find_conflict
from corral.spec.spec_errors import SpecError, SpecErrors
from corral.spec.validation_context import ValidationContext
from corral.spec.yaml.catalog_file import project_catalog
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.yaml_reader import read_document
from corral.spec.yaml.yaml_recovery import UNREADABLE, PartialMapping

if TYPE_CHECKING:
    from corral.spec.models.run import RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class _StackFile:
    """What corral reads from a stack file. If parts cannot be read, `errors` report them; the region may be unknown."""

    name: str
    where: str
    region: str | None
    spec: Mapping[str, Any]
    errors: tuple[SpecError, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether corral could read everything in the file."""
        return not self.errors


def environments(project_dir: Path) -> tuple[str, ...]:
    """Return the names of this project's clusters, sorted. Raises SpecErrors if the directory is not a project."""
    return stack_names(_folder(project_dir, "cluster"))


def read_base(project_dir: Path, name: str, config: Mapping[str, Any] | None = None) -> BaseSpec:
    """Read the base of this name. Raises SpecErrors.

    `config`: the base's config from Pulumi, by full key; None reads it from the base's file.
    """
    return _read_base(project_dir, name, project_catalog(project_dir), config).unwrap()


def read_environment(project_dir: Path, env: str, config: Mapping[str, Any] | None = None) -> Environment:
    """Read the cluster of this name and its base. Raises SpecErrors with every mistake in both files.

    `config`: the cluster's config from Pulumi, by full key; None reads it from the cluster's file.
    If the project's catalog has mistakes, raises only those: corral cannot validate either file without it.
    """
    catalog = project_catalog(project_dir)
    try:
        file = _read_stack(project_dir, "cluster", env, config)
    except SpecErrors as error:
        raise SpecErrors((*_errors_of_base(project_dir, env, catalog), *error.errors)) from None
    base = _base_of(project_dir, file, catalog)
    # Invalid zones of the base would cause misleading errors.
    known = None if any(error.path.startswith("network") for error in base.errors) else base.spec
    context = ValidationContext(region=_region(file, base.spec), catalog=catalog, base=known)
    cluster = try_parse_cluster(file.spec, name=env, where=file.where, context=context)
    errors = (*base.errors, *file.errors, *_without_unread_region(file, cluster.errors))
    if errors or base.spec is None or cluster.spec is None:
        raise SpecErrors(errors)
    if conflicts := _head_address_errors(project_dir, cluster.spec, base.spec):
        raise SpecErrors(conflicts)
    return _with_runs(project_dir, Environment(base=base.spec, cluster=cluster.spec, catalog=catalog))


def _with_runs(project_dir: Path, environment: Environment) -> Environment:
    """Return the environment with the runs of the files that its cluster names. Raises SpecErrors of all of them."""
    if not environment.cluster.jobs.runs:
        return environment
    from corral.spec.yaml.run_files import read_run  # most environments declare no run

    runs: dict[str, RunSpec] = {}
    errors: list[SpecError] = []
    for name, path in environment.cluster.jobs.runs.items():
        try:
            runs[name] = read_run(project_dir / path, environment)
        except SpecErrors as error:
            errors += error.errors
    if errors:
        raise SpecErrors(errors)
    return replace(environment, runs=runs)


def _head_address_errors(project_dir: Path, cluster: ClusterSpec, base: BaseSpec) -> tuple[SpecError, ...]:
    """Return an error if another cluster of this project, on the same base, has the same head address."""
    first = base.network.zone_names[0]
    others = (name for name in environments(project_dir) if name != cluster.name)
    found = (head for name in others if (head := _declared_head(project_dir, name, first)))
    heads = (head for head in found if head.address or not base.network.adopt)  # adopted subnets reserve no addresses
    own = DeclaredHead(
        cluster=cluster.name, base=base.name, zone=cluster.head.zone or first, address=cluster.head.address
    )
    other = find_conflict(own, heads)
    if other is None:
        return ()
    message = f"conflicts with the head of {other.cluster!r} on base {base.name!r}"
    fix = f"set head.address of the one that is not deployed yet, here or in {_where('cluster', other.cluster)}"
    return (SpecError(file=cluster.file, path="head.address", message=message, fix=fix),)


def _declared_head(project_dir: Path, name: str, first_zone: str) -> DeclaredHead | None:
    """Return this cluster's head as declared; None if its file is invalid."""
    try:
        file = _read_file(project_dir, "cluster", name)
        if not file.is_complete:
            return None
        spec, head = file.spec, file.spec.get("head") or {}
        zone, address, base = head.get("zone"), head.get("address"), spec.get("base") or name
        return DeclaredHead(
            cluster=name,
            base=str(base),
            zone=first_zone if zone is None else str(zone),
            address=None if address is None else parse_address(address),
        )
    except (SpecErrors, AttributeError, PydanticCustomError):
        return None


def _errors_of_base(project_dir: Path, env: str, catalog: Catalog) -> tuple[SpecError, ...]:
    """Return the errors of the base of this name, if it exists; used if the cluster's file cannot be parsed."""
    folder = project_dir / "stacks" / "base"
    is_there = folder.is_dir() and env in stack_names(folder)
    return _read_base(project_dir, env, catalog).errors if is_there else ()


def _base_of(project_dir: Path, cluster: _StackFile, catalog: Catalog) -> ParseResult[BaseSpec]:
    """Return the cluster's base. If it does not exist, that is an error in the cluster's file."""
    name = cluster.spec.get("base", cluster.name)
    if not isinstance(name, str):
        return ParseResult(errors=())
    if (
        isinstance(cluster.spec, PartialMapping) and "base" not in cluster.spec
    ):  # its name may be in an unreadable part of the file
        return ParseResult(errors=_errors_of_base(project_dir, name, catalog))
    known = stack_names(_folder(project_dir, "base"))
    if name in known:
        return _read_base(project_dir, name, catalog)
    fix = suggestion(name, known) if known else "none exists yet"
    return ParseResult(errors=(SpecError(file=cluster.where, path="base", message=f"unknown base {name!r}", fix=fix),))


def _region(file: _StackFile, base: BaseSpec | None) -> str:
    """Return the region of the file; if it cannot be read, that of its base, or an unknown region."""
    return (base.region if base else "") if file.region is None else file.region


def _without_unread_region(file: _StackFile, errors: tuple[SpecError, ...]) -> tuple[SpecError, ...]:
    """Return the errors, without those about a region that could not be read."""
    return tuple(error for error in errors if file.region is not None or error.path != "aws:region")


def _read_base(
    project_dir: Path, name: str, catalog: Catalog, config: Mapping[str, Any] | None = None
) -> ParseResult[BaseSpec]:
    try:
        file = _read_stack(project_dir, "base", name, config)
    except SpecErrors as error:
        return ParseResult(errors=error.errors)
    context = ValidationContext(region=_region(file, None), catalog=catalog)
    found = try_parse_base(file.spec, name=name, where=file.where, context=context)
    return ParseResult(spec=found.spec, errors=(*file.errors, *_without_unread_region(file, found.errors)))


def _read_stack(project_dir: Path, kind: str, name: str, config: Mapping[str, Any] | None) -> _StackFile:
    """Read what the stack declares, from its file or from Pulumi's config.

    A file that exists must contain a spec, since commands read only the file.
    """
    if config is None:
        return _read_file(project_dir, kind, name)
    if name not in stack_names(project_dir / "stacks" / kind):
        return _from_config(config, kind, name)
    file = _read_file(project_dir, kind, name)
    # Pulumi accepts some YAML mistakes, and decrypts secrets, which a spec must not have: its plan is plain text.
    if not file.is_complete or _is_encrypted(file.spec):
        return file
    given = _from_config(config, kind, name)
    # Pulumi sorts the fields of an object; list mistakes in the order of the file.
    return file if (file.region, file.spec) == (given.region, given.spec) else given


def _is_encrypted(value: Any) -> bool:
    """Return whether any part of this value is a Pulumi secret: `secure: v1:...`."""
    if isinstance(value, Mapping):
        return set(value) == {"secure"} or any(map(_is_encrypted, value.values()))
    return isinstance(value, list) and any(map(_is_encrypted, value))


def _from_config(config: Mapping[str, Any], kind: str, name: str) -> _StackFile:
    return _stack_file({"config": dict(config)}, kind, name, _where(kind, name))


def _where(kind: str, name: str) -> str:
    return f"stacks/{kind}/Pulumi.{name}.yaml"


def _read_file(project_dir: Path, kind: str, name: str) -> _StackFile:
    folder, where = _folder(project_dir, kind), _where(kind, name)
    known = stack_names(folder)
    if name not in known:
        what = "environment" if kind == "cluster" else "base"
        raise _error(where, f"unknown {what} {name!r}", suggestion(name, known) if known else "none exists yet")
    try:
        document = read_document((folder / f"Pulumi.{name}.yaml").read_bytes())
    except OSError as error:
        raise _error(where, f"cannot be read: {error.strerror}") from None
    errors = tuple(mistake.in_file(where) for mistake in document.mistakes)
    try:
        return replace(_stack_file(document.value, kind, name, where), errors=errors)
    except SpecErrors as error:
        raise SpecErrors((*errors, *error.errors)) from None


def _stack_file(value: Any, kind: str, name: str, where: str) -> _StackFile:
    content = _fields(value, where, "", "config")
    settings = _fields(_field(content, "config"), where, "config", "aws:region and a spec")
    key = f"corral-{kind}:spec"
    if key not in settings and not isinstance(settings, PartialMapping):
        raise _error(where, f"{key} is missing", _spec_hint(settings), path="config")
    region = _field(settings, "aws:region")
    return _StackFile(
        name=name,
        where=where,
        region=None if region is UNREADABLE else "" if region is None else str(region),
        spec=_fields(_field(settings, key), where, key, "fields"),
    )


def _field(fields: Mapping[str, Any], key: str) -> Any:
    """Return the value of this key; UNREADABLE if it may be in a part that could not be read."""
    return fields.get(key, UNREADABLE if isinstance(fields, PartialMapping) else None)


def _spec_hint(settings: Mapping[str, Any]) -> str:
    """Return how to add the missing spec: under another name it may be there already."""
    other = next((name for name in settings if name == "spec" or name.endswith(":spec")), None)
    return f"rename {other!r}" if other else "see the shipped environment dev"


def _fields(value: Any, where: str, path: str, wanted: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    if value is UNREADABLE:
        return PartialMapping()
    if value is None:
        raise _error(where, "is empty", f"add {wanted}", path=path)
    raise _error(where, f"expected {wanted}, found {format_value(value)}", path=path)


def _folder(project_dir: Path, kind: str) -> Path:
    folder = project_dir / "stacks" / kind
    if not folder.is_dir():
        raise _error(
            str(project_dir),
            f"is not a corral project: it has no stacks/{kind}",
            "change to a project, or add --project DIR",
        )
    return folder


def _error(where: str, message: str, fix: str = "", *, path: str = "") -> SpecErrors:
    return SpecErrors([SpecError(file=where, path=path, message=message, fix=fix)])
