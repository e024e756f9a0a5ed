"""Reads the two Pulumi projects, and maintains the box's copy of them, so that the box changes no tracked file.

The copy follows the source file by file. Its stack files also hold what belongs only to the box: the salt of its
secrets and the image that its machines boot. Settings of a real account are omitted.

Stack files are read as Pulumi reads them, and written with all text in quotes: YAML readers disagree about `off`, `no`,
`12:30` and `012`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from corral.catalog.aws.images import BOX_PROFILE, IMAGE_VARIABLE
from corral.catalog.loader.suggestions import nearest
from corral.catalog.project_catalog import FILE_NAME as CATALOG
from corral.engine.engine_errors import WRONG_INPUT, EngineError, UnknownEnvironment
from corral.model.pulumi_files import stack_names
from corral.spec.yaml.yaml_reader import read_document
from corral.spec.yaml.yaml_recovery import UNREADABLE, PartialMapping

PROJECTS = ("base", "cluster")
_IMAGE = "corral-cluster:imageProfile"
SECRETS = ("encryptionsalt", "encryptedkey", "secretsprovider")
HEADER = "# A copy, updated by every `corral up --box`: edit the original.\n# {source}\n"


def box_image(variables: Mapping[str, str]) -> str:
    """The image profile of the machines in a box with these variables."""
    return variables.get(IMAGE_VARIABLE, BOX_PROFILE)


def sync_box_copy(source: Path, copy: Path, image: str = BOX_PROFILE) -> Path:
    """Updates the copy of both projects from the source directory. Returns the copy. Does nothing if both are one.

    `image`: the image profile of the box's machines.
    """
    if source.resolve() == copy.resolve():
        return copy
    for path in _run_files(source / "cluster"):
        if (source.parent / path).is_file():
            (copy.parent / path).parent.mkdir(parents=True, exist_ok=True)
            _write(copy.parent / path, (source.parent / path).read_bytes())
    for project in PROJECTS:
        _sync_project(source / project, copy / project, image if project == "cluster" else None)
    _sync_catalog(source.parent / CATALOG, copy.parent / CATALOG)
    return copy


def environment_file(stacks: Path, environment: str) -> Path:
    """The file that declares the environment. Raises UnknownEnvironment if there is none."""
    folder = stacks / "cluster"
    known = stack_names(folder)
    if environment not in known:
        raise UnknownEnvironment(_unknown(environment, known, folder), code=WRONG_INPUT)
    return folder / f"Pulumi.{environment}.yaml"


def base_of(stacks: Path, environment: str) -> str:
    """The name of the base that the environment's cluster uses. Raises EngineError if it cannot be read."""
    file = environment_file(stacks, environment)
    spec = _setting(_settings(file), "corral-cluster:spec")
    base = _setting(spec, "base") if isinstance(spec, Mapping) else spec
    if base is UNREADABLE:
        raise EngineError(f"{file}: {read_document(file.read_bytes()).mistakes[0]}", code=WRONG_INPUT)
    return base if isinstance(spec, Mapping) and isinstance(base, str) else environment


def region_of(stack_file: Path) -> str | None:
    """The region that a stack file names; None if it names none."""
    region = _settings(stack_file).get("aws:region") if stack_file.is_file() else None
    return region if isinstance(region, str) else None


def secrets_provider_of(stack_file: Path) -> str | None:
    """The secrets provider that a stack file names; None for a passphrase."""
    found = fields_of(stack_file).get("secretsprovider") if stack_file.is_file() else None
    return found if isinstance(found, str) and found else None


def fields_of(file: Path) -> Mapping[str, Any]:
    """The fields of a Pulumi file, as far as they can be read. Raises EngineError if it is not a mapping."""
    value = read_document(file.read_bytes()).value
    if value is None or value is UNREADABLE:
        return {} if value is None else PartialMapping()
    if not isinstance(value, dict):
        raise EngineError(f"{file} holds no settings - a stack file starts with `config:`", code=WRONG_INPUT)
    return value


def _settings(stack_file: Path) -> Mapping[str, Any]:
    config = _setting(fields_of(stack_file), "config")
    return config if isinstance(config, Mapping) else PartialMapping() if config is UNREADABLE else {}


def _setting(fields: Mapping[str, Any], key: str) -> Any:
    """The value of this key; UNREADABLE also if it may be in an unreadable part."""
    return fields.get(key, UNREADABLE if isinstance(fields, PartialMapping) else None)


def _unknown(environment: str, known: Sequence[str], folder: Path) -> str:
    close = nearest(environment, known)
    hint = f"did you mean '{close[0]}'?" if close else "choose one of them" if known else "`corral new DIR` creates one"
    return f"unknown environment '{environment}': {folder} declares {', '.join(known) or 'none'} - {hint}"


def _run_files(folder: Path) -> Iterator[Path]:
    """The run files that clusters declare, from the project's directory, as far as their files can be read."""
    for name in stack_names(folder):
        found: Any = _settings(folder / f"Pulumi.{name}.yaml")
        for key in ("corral-cluster:spec", "jobs", "runs"):
            found = found.get(key) if isinstance(found, Mapping) else None
        for path in found.values() if isinstance(found, Mapping) else ():
            if isinstance(path, str) and not path.startswith("/") and ".." not in Path(path).parts:
                yield Path(path)


def _sync_catalog(source: Path, copy: Path) -> None:
    """Copies the project's catalog.toml; removes it from the copy if the project has none."""
    if source.is_file():
        _write(copy, source.read_bytes())
    else:
        copy.unlink(missing_ok=True)


def _sync_project(source: Path, copy: Path, image: str | None) -> None:
    copy.mkdir(parents=True, exist_ok=True)
    files = {file.name: file for file in sorted(source.iterdir()) if file.is_file()}
    for file in copy.iterdir():
        if file.is_file() and file.name not in files:
            file.unlink()
    for name, file in files.items():
        if name.startswith("Pulumi.") and name.endswith(".yaml") and name != "Pulumi.yaml":
            _sync_stack_file(file, copy / name, image)
        else:
            _write(copy / name, file.read_bytes())


def _sync_stack_file(source: Path, copy: Path, image: str | None) -> None:
    """Updates the copy of a stack file. If the file has errors, the copy stays unchanged."""
    if read_document(source.read_bytes()).mistakes:
        return
    document = {name: value for name, value in fields_of(source).items() if name not in SECRETS}
    if copy.exists():
        document |= {
            name: value for name, value in fields_of(copy).items() if name in SECRETS and isinstance(value, str)
        }
    if image is not None:
        config = document.get("config")
        document["config"] = {**(config if isinstance(config, Mapping) else {}), _IMAGE: image}
    _write(copy, (HEADER.format(source=source) + _written(document)).encode())


def _written(document: Mapping[str, Any]) -> str:
    """The fields as YAML that every reader understands in the same way."""
    return str(yaml.dump(document, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=10**6))


class _Quoting(yaml.SafeDumper):
    """PyYAML's writer with all text in quotes."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_Quoting.add_representer(str, _quoted)


def _write(file: Path, content: bytes) -> None:
    """Writes the file atomically; does nothing if it has this content already."""
    if file.exists() and file.read_bytes() == content:
        return
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(file)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise OSError(error.errno, error.strerror, str(file)) from None  # the error of a full disk names no file
