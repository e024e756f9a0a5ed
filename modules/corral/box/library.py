"""boto3 for the machines: the copy that this Python has, with the services alone that a cluster's machines call.

On EC2 the image or its packages have it; a machine of the box has this system's Python, which need not.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

PLACE = "opt/corral/library"  # on a machine, without the leading slash
_PACKAGES = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
_SERVICES = frozenset(
    ("cloudwatch", "ec2", "fsx", "logs", "route53", "s3", "secretsmanager", "sns", "ssm", "sts", "sso", "sso-oidc")
)


def copy_library(target: Path) -> None:
    """Makes the directory, unless it is there; a copy that breaks off is made anew."""
    if target.exists():
        return
    draft = target.with_suffix(".new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for name in _PACKAGES:
        source = _source(name)
        if source.is_file():
            shutil.copy(source, draft / source.name)
        else:
            shutil.copytree(source, draft / name, ignore=_superfluous)
    draft.rename(target)


def _source(package: str) -> Path:
    """The directory of a package, or the file of a module."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(package)
    origin = Path(found.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def _superfluous(directory: str, names: list[str]) -> set[str]:
    """Of botocore's data all services but ours, and of these all versions of their API but the newest."""
    place = Path(directory)
    left_out = {name for name in names if name == "__pycache__"}
    if place.name == "data" and place.parent.name in ("botocore", "boto3"):
        left_out |= {name for name in names if (place / name).is_dir() and name not in _SERVICES}
    elif place.parent.name == "data" and place.parent.parent.name == "botocore":
        left_out |= set(sorted(names)[:-1])
    return left_out
