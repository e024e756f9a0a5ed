"""The box's own copy of the two Pulumi projects, so that a trial changes no file that is tracked.

The copy follows the source file by file. What belongs to the box alone is kept in the copy's stack files: the salt of
its secrets, and the image that its machines boot. What belongs to a real account is left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from corral.catalog.images import BOX_PROFILE
from corral.catalog.names import nearest
from corral.catalog.project import FILE_NAME as CATALOGUE
from corral.engine.errors import WRONG_INPUT, EngineError
from corral.model.stack_files import stack_names

PROJECTS = ("base", "cluster")
BOX_IMAGE = ("corral-cluster:imageProfile", BOX_PROFILE)
SECRETS = ("encryptionsalt", "encryptedkey", "secretsprovider")
NOTE = "# A copy, brought up to date by every `corral up --box`: edit the original.\n# {source}\n"


def sync(source: Path, copy: Path) -> Path:
    """The copy, which now says what the source directory's two projects say. A copy of itself stays as it is."""
    if source.resolve() == copy.resolve():
        return copy
    for project in PROJECTS:
        _sync_project(source / project, copy / project, is_cluster=project == "cluster")
    _sync_catalogue(source.parent / CATALOGUE, copy.parent / CATALOGUE)
    return copy


def environment_file(stacks: Path, environment: str) -> Path:
    """The file that declares the environment. Raises EngineError where there is none."""
    folder = stacks / "cluster"
    known = stack_names(folder)
    if environment not in known:
        raise EngineError(_unknown(environment, known, folder), code=WRONG_INPUT)
    return folder / f"Pulumi.{environment}.yaml"


def base_of(stacks: Path, environment: str) -> str:
    """The name of the base that the environment's cluster stands on."""
    config = _read(environment_file(stacks, environment)).get("config") or {}
    spec = config.get("corral-cluster:spec") if isinstance(config, Mapping) else None
    return str(spec.get("base", environment)) if isinstance(spec, Mapping) else environment


def region_of(stack_file: Path) -> str | None:
    """The region that a stack's file names."""
    config = _read(stack_file).get("config") if stack_file.is_file() else None
    return str(config["aws:region"]) if isinstance(config, Mapping) and "aws:region" in config else None


def secrets_provider_of(stack_file: Path) -> str | None:
    """What encrypts the stack's secrets, where its file names it; else it is a passphrase."""
    found = _read(stack_file).get("secretsprovider") if stack_file.is_file() else None
    return str(found) if found else None


def _unknown(environment: str, known: Sequence[str], folder: Path) -> str:
    close = nearest(environment, known)
    hint = f"did you mean '{close[0]}'?" if close else "name one of them" if known else "`corral new DIR` writes one"
    return f"there is no environment '{environment}': {folder} declares {', '.join(known) or 'none'} - {hint}"


def _sync_catalogue(source: Path, copy: Path) -> None:
    """The project's own types and prices, which its programs plan with; where it has none, neither has the copy."""
    if source.is_file():
        _write(copy, source.read_bytes())
    else:
        copy.unlink(missing_ok=True)


def _sync_project(source: Path, copy: Path, *, is_cluster: bool) -> None:
    copy.mkdir(parents=True, exist_ok=True)
    files = {file.name: file for file in sorted(source.iterdir()) if file.is_file()}
    for file in copy.iterdir():
        if file.is_file() and file.name not in files:
            file.unlink()
    for name, file in files.items():
        if name.startswith("Pulumi.") and name.endswith(".yaml") and name != "Pulumi.yaml":
            _write(copy / name, _stack_file(file, copy / name, is_cluster=is_cluster).encode())
        else:
            _write(copy / name, file.read_bytes())


def _stack_file(source: Path, copy: Path, *, is_cluster: bool) -> str:
    document = {name: value for name, value in _read(source).items() if name not in SECRETS}
    if copy.exists():
        document |= {name: value for name, value in _read(copy).items() if name in SECRETS}
    if is_cluster:
        config = document.get("config")
        document["config"] = {**(config if isinstance(config, Mapping) else {}), BOX_IMAGE[0]: BOX_IMAGE[1]}
    return NOTE.format(source=source) + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10**6)


def _read(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise EngineError(f"{file} is not YAML: {' '.join(str(error).split())}", code=WRONG_INPUT) from None
    if document is not None and not isinstance(document, dict):
        raise EngineError(f"{file} holds no settings: a stack's file begins with `config:`", code=WRONG_INPUT)
    return document or {}


def _write(file: Path, content: bytes) -> None:
    """Writes the file in one step, and not at all where it says that already."""
    if file.exists() and file.read_bytes() == content:
        return
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(file)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise OSError(error.errno, error.strerror, str(file)) from None  # a full disk does not say which file it is
