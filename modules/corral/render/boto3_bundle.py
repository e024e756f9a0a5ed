"""The agent's dependencies: boto3 and its imports, with only the services that the agent calls.

Machines run the same boto3 as this Python, regardless of their image. The bundle is an archive of its own: it changes
with boto3, the agent with corral.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from corral.render.agent_bundle import packed

PACKAGES = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
SERVICES = ("ec2", "ecr", "logs", "route53", "s3", "secretsmanager", "sns", "sts")
_KINDS = (".py", ".json", ".json.gz", ".pem")
# Documentation, and boto3's resources, which the agent does not use.
_UNREAD = ("examples-1.json", "resources-1.json")


class NotPure(Exception):
    """A package that does not run on every machine; the text is a message for the user."""


@cache
def library_bundle() -> bytes:
    """A gzipped tar of Python packages, for a Python path. Raises NotPure."""
    return packed(file for package in PACKAGES for file in _files(package))


def _files(package: str) -> Iterator[tuple[str, bytes]]:
    path = _package_path(package)
    if path.is_file():
        yield path.name, path.read_bytes()
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path.parent)
        if file.suffix in (".so", ".pyd"):
            raise NotPure(f"{package} contains {name}, which is built for this system - install a pure Python version")
        if file.is_file() and file.name.endswith(_KINDS) and _is_needed(path, name):
            yield name.as_posix(), file.read_bytes()


def _is_needed(path: Path, name: Path) -> bool:
    """Whether to include this data file: shared, or of the newest API version of an agent's service."""
    if name.parts[1:2] != ("data",) or len(name.parts) == 3:
        return True
    service, version = name.parts[2:4]
    newest = max(one.name for one in (path / "data" / service).iterdir())
    return service in SERVICES and version == newest and name.name not in _UNREAD


def _package_path(package: str) -> Path:
    """The directory of a package, or the file of a module."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(package)
    origin = Path(found.origin)
    return origin.parent if origin.name == "__init__.py" else origin
