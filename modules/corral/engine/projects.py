"""The box's own copy of the two Pulumi projects, so that a trial changes no file that is tracked.

The copy follows the source file by file. What belongs to the box alone is kept in the copy's stack files: the salt of
its secrets, and the image that its machines boot. What belongs to a real account is left out.

Stack files are read as corral reads them everywhere, which is as Pulumi does, and are written with all text in quotes:
readers of YAML do not agree about `off`, `no`, `12:30` or `012`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from corral.catalog.images import BOX_PROFILE, IMAGE_VARIABLE
from corral.catalog.names import nearest
from corral.catalog.project import FILE_NAME as CATALOGUE
from corral.engine.errors import WRONG_INPUT, EngineError, UnknownEnvironment
from corral.model.stack_files import stack_names
from corral.spec.yaml_parts import UNREADABLE, Torn
from corral.spec.yaml_text import read_document

PROJECTS = ("base", "cluster")
_IMAGE = "corral-cluster:imageProfile"
SECRETS = ("encryptionsalt", "encryptedkey", "secretsprovider")
NOTE = "# A copy, brought up to date by every `corral up --box`: edit the original.\n# {source}\n"


def box_image(variables: Mapping[str, str]) -> str:
    """The image profile of the machines of a box that has these variables."""
    return variables.get(IMAGE_VARIABLE, BOX_PROFILE)


def sync(source: Path, copy: Path, image: str = BOX_PROFILE) -> Path:
    """The copy, which now says what the source directory's two projects say. A copy of itself stays as it is.

    `image`: the profile of what the box's machines boot.
    """
    if source.resolve() == copy.resolve():
        return copy
    for project in PROJECTS:
        _sync_project(source / project, copy / project, image if project == "cluster" else None)
    _sync_catalogue(source.parent / CATALOGUE, copy.parent / CATALOGUE)
    return copy


def environment_file(stacks: Path, environment: str) -> Path:
    """The file that declares the environment. Raises UnknownEnvironment where there is none."""
    folder = stacks / "cluster"
    known = stack_names(folder)
    if environment not in known:
        raise UnknownEnvironment(_unknown(environment, known, folder), code=WRONG_INPUT)
    return folder / f"Pulumi.{environment}.yaml"


def base_of(stacks: Path, environment: str) -> str:
    """The name of the base that the environment's cluster stands on. Raises EngineError where that cannot be read."""
    file = environment_file(stacks, environment)
    spec = _setting(_settings(file), "corral-cluster:spec")
    base = _setting(spec, "base") if isinstance(spec, Mapping) else spec
    if base is UNREADABLE:
        raise EngineError(f"{file}: {read_document(file.read_bytes()).mistakes[0]}", code=WRONG_INPUT)
    return base if isinstance(spec, Mapping) and isinstance(base, str) else environment


def region_of(stack_file: Path) -> str | None:
    """The region that a stack's file names."""
    region = _settings(stack_file).get("aws:region") if stack_file.is_file() else None
    return region if isinstance(region, str) else None


def secrets_provider_of(stack_file: Path) -> str | None:
    """What encrypts the stack's secrets, where its file names it; else it is a passphrase."""
    found = fields_of(stack_file).get("secretsprovider") if stack_file.is_file() else None
    return found if isinstance(found, str) and found else None


def fields_of(file: Path) -> Mapping[str, Any]:
    """What a file of Pulumi's says, as far as it can be read. Raises EngineError where it holds no fields."""
    value = read_document(file.read_bytes()).value
    if value is None or value is UNREADABLE:
        return {} if value is None else Torn()
    if not isinstance(value, dict):
        raise EngineError(f"{file} holds no settings: a stack's file begins with `config:`", code=WRONG_INPUT)
    return value


def _settings(stack_file: Path) -> Mapping[str, Any]:
    config = _setting(fields_of(stack_file), "config")
    return config if isinstance(config, Mapping) else Torn() if config is UNREADABLE else {}


def _setting(fields: Mapping[str, Any], key: str) -> Any:
    """What stands under this key; UNREADABLE also where it may stand in what could not be read."""
    return fields.get(key, UNREADABLE if isinstance(fields, Torn) else None)


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
    """Brings a stack file's copy up to date; one with mistakes has the copy that it had before them, if any."""
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
    _write(copy, (NOTE.format(source=source) + _written(document)).encode())


def _written(document: Mapping[str, Any]) -> str:
    """The fields as YAML that every reader understands alike."""
    return str(yaml.dump(document, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=10**6))


class _Quoting(yaml.SafeDumper):
    """PyYAML's writer, which puts all text in quotes."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_Quoting.add_representer(str, _quoted)


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
