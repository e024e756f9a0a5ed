"""Find the calls of S3 on a bucket that do not say whose it must be: of corral in this process, and of a box's machines.

`watch_owners` hooks into botocore for a whole test run. `unowned_calls` reads what a box has logged; there the callers
are instances, whose credentials only root has: the agent, and fetch.py before it.

Without an owner by design, so that both leave them out:
* Pulumi's engine and its `aws` provider, here the stand-in: they have no parameter for it. corral checks the state
  bucket before it runs the engine, and the provider creates the base's bucket itself.
* The jobs of users, which have a role of their own: whose buckets they use is theirs to know.
* The checks of the buckets that users name in a spec, which may be another account's (decision 161).
* Tests and tools.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from botocore.client import BaseClient
from botocore.session import get_session

OWNER = "ExpectedBucketOwner"
EXEMPT = ("corral.box.provider", "corral.preflight.bucket_check", "corral.preflight.key_check")
# Between corral and botocore; s3transfer makes its calls in threads of its own, for which corral alone uses it.
LIBRARIES = ("boto3", "botocore", "s3transfer", "concurrent", "threading", "functools", "contextlib", __name__)


def watch_owners(found: list[str]) -> None:
    """Append to the list every later call of corral in this process without an owner. For the rest of the process."""
    convert = BaseClient._convert_to_request_dict

    def compared(self: Any, api_params: Mapping[str, Any], operation_model: Any, *rest: Any, **named: Any) -> Any:
        if operation_model.service_model.service_name == "s3" and OWNER not in api_params:
            if OWNER in operation_model.input_shape.members and (caller := _caller()):
                found.append(f"{caller} calls {operation_model.name} of any account's bucket {api_params['Bucket']}")
        return convert(self, api_params, operation_model, *rest, **named)

    BaseClient._convert_to_request_dict = compared


def _caller() -> str | None:
    """The module of corral that makes the call; None for a test, a tool, and those that are exempt."""
    modules = list(_modules())
    if any(one.startswith(EXEMPT) for one in modules):
        return None
    nearest = next((one for one in modules if not one.startswith(LIBRARIES)), "s3transfer")
    return nearest if nearest.startswith(("corral.", "s3transfer")) else None


def _modules() -> Iterator[str]:
    """The modules of the functions that run in this thread, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        yield str(frame.f_globals.get("__name__"))
        frame = frame.f_back  # type: ignore[assignment]


def unowned_calls(log: Path) -> list[str]:
    """One line for each kind of call by a box's machines without an owner. `log`: the box's calls."""
    return unowned(log.read_text().splitlines()) if log.exists() else []


def unowned(lines: Iterable[str]) -> list[str]:
    """The same for the lines of a log."""
    calls = (json.loads(line) for line in lines)
    model = get_session().get_service_model("s3")
    with_owner = {name for name in model.operation_names if OWNER in model.operation_model(name).input_shape.members}
    return sorted(
        {
            f"a machine calls {one['action']} of any account's bucket"
            for one in calls
            if one["action"] in with_owner and one["service"] == "s3" and "instance" in one
            if "expected_owner" not in one
        }
    )
