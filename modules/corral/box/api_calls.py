"""Identify API calls - service, action, region and caller of a request - and log them. Nothing here answers a call."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qs

from moto.core.request import Request
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model

from corral.box.state.directory import open_log

SCOPE = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/,]+)/")
SERVICE_OF_SIGNING_NAME = {
    "aps": "amp",
    "monitoring": "cloudwatch",
    "elasticfilesystem": "efs",
    "elasticloadbalancing": "elbv2",
    "servicequotas": "service-quotas",
    "tagging": "resourcegroupstaggingapi",
}
# Prometheus's own API of a workspace, which botocore's model lacks. Source: Amazon Managed Service for Prometheus User
# Guide, "Prometheus-compatible APIs".
_OF_WORKSPACE = re.compile(r"/workspaces/[^/]+/api/v1/(remote_write|query|query_range)")
_WORKSPACE_ACTIONS = {"remote_write": "RemoteWrite", "query": "QueryMetrics", "query_range": "QueryMetrics"}
READS = re.compile(r"^(Describe|Get|List|Head|Lookup|Search|Select|Query|Scan|BatchGet|Simulate|Validate|Test)")
ERROR_CODE = re.compile(rb"<Code>([^<]+)</Code>|\"__type\":\s*\"(?:[^\"#]*#)?([^\"]+)\"")
RECENT_CALLS = 10_000  # shown by /_box/calls; the log file has all calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One API call according to its signature and body; `action` is empty if unknown."""

    service: str
    action: str
    region: str
    caller: str

    @property
    def changes(self) -> bool:
        """True unless the action is read-only."""
        return not READS.match(self.action)


def identify_call(environ: Mapping[str, Any], body: bytes) -> Call:
    """The API call of a request."""
    scope = SCOPE.search(environ.get("HTTP_AUTHORIZATION", "")) or _presigned(environ)
    caller, region, signing_name = scope.groups() if scope else ("", "", "")
    service = SERVICE_OF_SIGNING_NAME.get(signing_name, signing_name)
    return Call(service=service, action=_action(environ, body, service), region=region, caller=caller)


def _presigned(environ: Mapping[str, Any]) -> re.Match[str] | None:
    """The scope of a presigned URL. Source: S3 API reference, "Authenticating requests: using query parameters"."""
    credential = parse_qs(environ.get("QUERY_STRING", "")).get("X-Amz-Credential", [""])[0]
    return SCOPE.match(f"Credential={credential}")


def _action(environ: Mapping[str, Any], body: bytes, service: str) -> str:
    if service == "s3":  # moto's S3 knows no other way, so a header that names an action must not count
        return _routed_action(environ, service)
    if service == "amp" and (found := _OF_WORKSPACE.fullmatch(environ.get("PATH_INFO", ""))):
        return _WORKSPACE_ACTIONS[found[1]]
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        return str(target).rpartition(".")[2]
    if named := re.search(r"/operation/(\w+)$", environ.get("PATH_INFO", "")):
        return named[1]
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return str(parse_qs(body.decode("utf-8", "replace")).get("Action", [""])[0])
    if query_action := parse_qs(environ.get("QUERY_STRING", "")).get("Action"):
        return str(query_action[0])
    return _routed_action(environ, service)


def _routed_action(environ: Mapping[str, Any], service: str) -> str:
    try:
        operation, _ = get_service_router(service).match(Request({**environ, "wsgi.input": None}))
        return str(operation.name)
    except Exception:  # an unknown path: the answer reports it
        return ""


def known_action(call: Call) -> bool:
    """True if AWS has this action, whether or not the box implements it."""
    beyond_model = _WORKSPACE_ACTIONS.values() if call.service == "amp" else ()
    return call.action in (*get_service_model(call.service).operation_names, *beyond_model)


def find_error_code(body: bytes) -> str | None:
    """The AWS error code in the body of a failed call."""
    found = ERROR_CODE.search(body[:4096])
    return (found[1] or found[2]).decode("utf-8", "replace") if found else None


class CallLog:
    """The log of calls: the latest in memory, all in a file."""

    def __init__(self, path: Path) -> None:
        self.latest: deque[dict[str, Any]] = deque(maxlen=RECENT_CALLS)
        self._file: TextIO = os.fdopen(open_log(path), "a", encoding="utf-8", buffering=1)

    def add(self, call: Call, status: int, details: Mapping[str, str | None]) -> None:
        """Log an answered call, with those of the details that are not None."""
        entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **asdict(call), "status": status}
        entry |= {name: value for name, value in details.items() if value is not None}
        self.latest.append(entry)
        try:
            self._file.write(json.dumps(entry) + "\n")
        except OSError:
            return  # a full disk loses log lines, not calls; the failing save reports it
