"""What the agent needs beside itself: boto3 and all that it imports, with the services alone that the agent calls.

It is the boto3 that this Python has: machines run the very one that corral runs with, whatever their image brings.
It is packed as the agent is, and apart from it: it changes with boto3, the agent with corral.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from corral.render.bundle import packed

PACKAGES = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
SERVICES = ("ec2", "logs", "route53", "s3", "secretsmanager", "sns", "sts")
_KINDS = (".py", ".json", ".json.gz", ".pem")
# Texts of the documentation, and boto3's resources, which are another way to say what the agent says to clients.
_UNREAD = ("examples-1.json", "resources-1.json")


class NotPure(Exception):
    """A package that would not run on every machine; the text is for a person."""


@cache
def library_bundle() -> bytes:
    """A gzipped tar of Python packages, to be put on a Python path. Raises NotPure."""
    return packed(file for package in PACKAGES for file in _files(package))


def _files(package: str) -> Iterator[tuple[str, bytes]]:
    place = _place(package)
    if place.is_file():
        yield place.name, place.read_bytes()
        return
    for file in sorted(place.rglob("*")):
        name = file.relative_to(place.parent)
        if file.suffix in (".so", ".pyd"):
            raise NotPure(f"{package} is here with {name}, which is made for this system - install it without")
        if file.is_file() and file.name.endswith(_KINDS) and _is_needed(place, name):
            yield name.as_posix(), file.read_bytes()


def _is_needed(place: Path, name: Path) -> bool:
    """Of what boto3 and botocore know of AWS: what is of all services, or of ours in the newest version of its API."""
    if name.parts[1:2] != ("data",) or len(name.parts) == 3:
        return True
    service, version = name.parts[2:4]
    newest = max(one.name for one in (place / "data" / service).iterdir())
    return service in SERVICES and version == newest and name.name not in _UNREAD


def _place(package: str) -> Path:
    """The directory of a package, or the file of a module."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(package)
    origin = Path(found.origin)
    return origin.parent if origin.name == "__init__.py" else origin
