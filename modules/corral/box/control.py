"""Control a running box: inject and clear faults, set quotas, find its machines. `client` starts and stops a box.

Every failure is a `BoxError` with one sentence for the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from corral.box.account import REGION
from corral.box.client import running_address
from corral.box.daemon.daemon_process import send_request


def machines(dir: Path) -> Mapping[str, Path]:
    """The VPC directories of the running machines, by instance id."""
    answer = send_request(running_address(dir), "GET", "/_box/machines")
    return {instance_id: Path(directory) for instance_id, directory in answer.items()}


def session(dir: Path, session_id: str) -> Mapping[str, str]:
    """The `instance`, the `user` and the `command` of a session of Systems Manager; empty if there is none.

    An empty `user` ends the session at once.
    """
    return send_request(running_address(dir), "GET", f"/_box/session?{urlencode({'id': session_id})}")


def inject_fault(dir: Path, kind: str, **parameters: str) -> Mapping[str, Any]:
    """Inject a fault. Returns the ids of the affected `instances`, or the `line` of a fault that is now active.

    `parameters`, as far as the kind has them: type, zone, market, target (a queue, node or instance id), hits_left,
    duration and after (times such as 30s or 2m), remaining, reason, call, code, message. Raises BoxError if one is
    invalid.
    """
    return send_request(running_address(dir), "POST", f"/_box/fault/{kind}?{urlencode(parameters)}")


def clear_faults(dir: Path, kind: str = "all") -> int:
    """Clear the faults of this kind. Returns their number. Raises BoxError if there are none."""
    return int(send_request(running_address(dir), "POST", f"/_box/faults/clear?{urlencode({'kind': kind})}")["cleared"])


def faults(dir: Path) -> list[Mapping[str, Any]]:
    """The active faults, as docs/cli.md describes them; each has a `line` of text."""
    return list(send_request(running_address(dir), "GET", "/_box/faults")["faults"])


def quotas(dir: Path, region: str = REGION, code: str | None = None) -> Mapping[str, Any]:
    """The account's `quotas` in a `region`: all, or the one of this code. Raises BoxError for an unknown code."""
    query = {"region": region} if code is None else {"region": region, "code": code}
    return send_request(running_address(dir), "GET", f"/_box/quotas?{urlencode(query)}")


def set_quota(dir: Path, code: str, value: float | str, region: str = REGION) -> Mapping[str, Any]:
    """Set the quota of this code and return it. Raises BoxError for an unknown code or an invalid value."""
    query = urlencode({"code": code, "value": value, "region": region})
    return send_request(running_address(dir), "POST", f"/_box/quota?{query}")
