"""Find calls of S3 on a bucket that do not say whose it must be: of corral, in any process, and of a box's machines.

`watch_owners` hooks into botocore for a whole test run, in its own processes. `unowned_calls` reads what a box has
logged, of other processes: of instances, whose credentials only root has - the agent, and fetch.py before it - and of
commands and Pulumi programs, which call by boto3.

Without an owner by design, so that both leave them out:
* Pulumi's engine, which is no boto3, and its `aws` provider, here the stand-in: they have no parameter for it. corral
  checks the state bucket before it runs the engine, and the provider creates the base's bucket itself.
* The jobs of users, which have sessions of a role of their own: whose buckets they use is theirs to know.
* Calls with ANY_OWNER: about buckets that users name in a spec and that may be another account's, and the question
  whether a taken name is open (decision 161). A log does not have the parameter, so there it is the actions.
* Tests, which the log knows by the user agent that `watch_owners` gives them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from botocore.client import BaseClient
from botocore.model import OperationModel
from botocore.session import Session, get_session

from corral.box.provider.aws_clients import USER_AGENT

OWNER = "ExpectedBucketOwner"
PROVIDER = "corral.box.provider"
TESTS = "corral-tests"
OF_ANY_OWNER = frozenset({"HeadBucket", "GetBucketEncryption"})
# Between corral and botocore; s3transfer makes its calls in threads of its own, for which corral alone uses it.
UNOWNED: list[str] = []  # since the last test
LIBRARIES = ("boto3", "botocore", "s3transfer", "concurrent", "threading", "functools", "contextlib", __name__)


def watch_owners() -> None:
    """Append to UNOWNED every later call of corral in this process without an owner. For the rest of the process.

    All calls of the process get a user agent, by which logs know that they are watched.
    """
    emit, begin = BaseClient._emit_api_params, Session.__init__

    def named(self: Any, *positional: Any, **arguments: Any) -> None:
        begin(self, *positional, **arguments)
        self.user_agent_extra = TESTS

    def compared(self: Any, api_params: Mapping[str, Any], operation_model: Any, context: Any) -> Any:
        is_explicit = OWNER in api_params  # also ANY_OWNER, which a call has to name
        request = emit(self, api_params, operation_model, context)
        is_owned = is_explicit or OWNER in request or not _has_owner(operation_model)
        if not is_owned and (caller := _caller()):
            UNOWNED.append(f"{caller} calls {operation_model.name} of any account's bucket {request['Bucket']}")
        return request

    BaseClient._emit_api_params, Session.__init__ = compared, named


def _has_owner(operation: OperationModel) -> bool:
    return operation.service_model.service_name == "s3" and OWNER in operation.input_shape.members


def _caller() -> str | None:
    """The module of corral that makes the call; None for a test, a tool and the stand-in for Pulumi's provider."""
    nearest = next((one for one in _modules() if not one.startswith(LIBRARIES)), "s3transfer")
    return nearest if nearest.startswith(("corral.", "s3transfer")) and not nearest.startswith(PROVIDER) else None


def _modules() -> Iterator[str]:
    """The modules of the functions that run in this thread, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        yield str(frame.f_globals.get("__name__"))
        frame = frame.f_back  # type: ignore[assignment]


def unowned_calls(log: Path) -> list[str]:
    """One line for each kind of call without an owner. `log`: the box's calls."""
    return unowned(log.read_text().splitlines()) if log.exists() else []


def unowned(lines: Iterable[str]) -> list[str]:
    """The same for the lines of a log."""
    s3 = get_session().get_service_model("s3")
    on_buckets = {name for name in s3.operation_names if _has_owner(s3.operation_model(name))}
    calls = [one for one in map(json.loads, lines) if one["service"] == "s3" and one["action"] in on_buckets]
    without = {(who, one["action"]) for one in calls if "expected_owner" not in one and (who := _who(one))}
    return [f"a {who} calls {action} of any account's bucket" for who, action in sorted(without)]


def _who(call: Mapping[str, str]) -> str | None:
    """Who makes a call of a log that has to name an owner; None for others."""
    if "instance" in call:
        return "machine"
    agent = call.get("user_agent", "")
    is_command = agent.startswith("Boto3/") and not (TESTS in agent or USER_AGENT in agent)
    is_job = call["caller"].startswith("ASIA")  # a session's
    return "command" if is_command and not is_job and call["action"] not in OF_ANY_OWNER else None
