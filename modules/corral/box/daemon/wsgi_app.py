"""The WSGI application: control requests under /_box, and AWS calls, which moto answers.

An AWS call holds the cloud's lock until its changes are saved, and is logged when answered.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.wrappers import Response

from corral.box import access, api_errors, inventory
from corral.box.access.principals import instance_of
from corral.box.api import pricing, s3, service_quotas, ssm, tagging
from corral.box.api.service_quotas import QuotaError
from corral.box.api.sts import UnknownRole, role_session
from corral.box.api_calls import Call, CallLog, find_error_code, identify_call, known_action
from corral.box.api_errors import ApiError, HttpResponse
from corral.box.daemon.authorized_action import authorized
from corral.box.daemon.daemon_process import INVALID_REQUEST
from corral.box.daemon.new_resources import NewResources
from corral.box.daemon.request_guard import CONTROL, reason_to_refuse
from corral.box.daemon.rpc_cbor import answer_in_protocol
from corral.box.fault_api.fault_service import Faults
from corral.box.faults.records import FaultError
from corral.box.secret import BoxSecret
from corral.box.state.backend import CloudState

StartResponse = Callable[..., Any]

PHRASES = {status.value: status.phrase for status in HTTPStatus}

log = logging.getLogger(__name__)


class WsgiApp:
    """The application that the daemon serves."""

    def __init__(self, cloud: CloudState, calls: CallLog, secret: BoxSecret, stop: Callable[[], None]) -> None:
        self._cloud = cloud
        self._calls = calls
        self.facts: Mapping[str, Any] = {}  # what `/_box/health` reports
        self._secret = secret
        self._stop = stop
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._served: dict[str, bool] = {}
        self._new = NewResources()
        self.faults = Faults(cloud)
        self.machine_directories: Callable[[], Mapping[str, Path]] = dict  # if instances are machines

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        body = _read_body(environ)
        if (reason := reason_to_refuse(environ, self.facts["port"], self._secret)) is not None:
            log.warning("%s %s refused: %s", environ["REQUEST_METHOD"], environ.get("PATH_INFO"), reason)
            answer = _json(403, {"problem": reason})
        elif environ.get("PATH_INFO", "").startswith(CONTROL):
            parameters = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
            answer = self._safe_control(environ["REQUEST_METHOD"], environ["PATH_INFO"], parameters)
        else:
            answer = answer_in_protocol(environ, body, self._call)
        status, headers, content = answer
        if environ["REQUEST_METHOD"] != "HEAD":
            headers = {name: value for name, value in headers.items() if name.lower() != "content-length"}
            headers["Content-Length"] = str(len(content))
        start_response(f"{status} {PHRASES.get(status, 'Unknown')}", list(headers.items()))
        return [content]

    def _call(self, environ: dict[str, Any], body: bytes) -> HttpResponse:
        call = identify_call(environ, body)
        with self._cloud.lock:
            self.faults.end_blocks()
            answer = self._answer(environ, call, body)
            if call.changes and answer[0] < 400:
                self._cloud.changed()
        details = {
            "error": find_error_code(answer[2]) if answer[0] >= 400 else None,
            "instance": instance_of(call.caller),
            "expected_owner": environ.get("HTTP_X_AMZ_EXPECTED_BUCKET_OWNER"),
            # Who calls on a bucket: the engine, its provider, a command, or a program of a user's.
            "user_agent": environ.get("HTTP_USER_AGENT") if call.service == "s3" else None,
        }
        self._calls.add(call, answer[0], details)
        return answer

    def _answer(self, environ: dict[str, Any], call: Call, body: bytes) -> HttpResponse:
        try:
            who = access.authenticate(call)
            if call.service and not self._is_served(environ, call.service):
                raise NotImplementedError(f"the service {call.service}")
            if call.action and not known_action(call):
                raise ApiError("InvalidAction", f"The action {call.action} is not valid for {call.service}.")
            access.authorize(who, environ, call, body)
            if call.service == "s3":
                s3.require_owner(environ)
            self.faults.raise_api_faults(call)
            self._new.check(call, body)
            if call.service == pricing.NAME:
                return pricing.answer_call(environ)
            with authorized(call), tagging.deletions_noticed(call):
                answer = Response.from_app(self._moto, environ, buffered=True)
            if _is_web_page(answer, call):
                raise NotImplementedError(f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO')}")
            if answer.status_code < 400:
                self._new.add(call, body, answer.get_data())
            return answer.status_code, dict(answer.headers), answer.get_data()
        except Exception as error:
            refused = api_errors.to_api_error(error, call)
            log.warning("%s:%s refused: %s", call.service, call.action, refused)
            return api_errors.serialize_error(refused, call, environ.get("CONTENT_TYPE", ""))

    def _is_served(self, environ: dict[str, Any], service: str) -> bool:
        if service == pricing.NAME:
            return True
        if service not in self._served:
            host = self._moto.infer_service_region_host(environ, environ.get("PATH_INFO", ""))
            self._served[service] = bool(self._moto.get_backend_for_host(host))
        return self._served[service]

    def _safe_control(self, method: str, path: str, parameters: Mapping[str, str]) -> HttpResponse:
        try:
            return self._control(method, path, parameters)
        except (FaultError, QuotaError, UnknownRole) as error:
            return _json(INVALID_REQUEST, {"problem": str(error)})
        except Exception as error:
            log.error("%s %s failed", method, path, exc_info=True)
            return _json(500, {"problem": f"{type(error).__name__}: {error} - see box.log"})

    def _control(self, method: str, path: str, parameters: Mapping[str, str]) -> HttpResponse:
        match method, path.removeprefix(CONTROL):
            case "GET", "health":
                faults = [one["line"] for one in self.faults.active()]
                return _json(200, {**self.facts, "problem": self._cloud.problem, "faults": faults})
            case "GET", "inventory":
                with self._cloud.lock:
                    return _json(200, inventory.list_resources())
            case "GET", "machines":
                return _json(200, {name: str(path) for name, path in self.machine_directories().items()})
            case "GET", "session":
                return _json(200, ssm.find_session(parameters.get("id", "")))
            case "GET", "calls":
                return _json(200, {"calls": list(self._calls.latest)})
            case "GET", "faults":
                return _json(200, {"faults": self.faults.active()})
            case "POST", "faults/clear":
                return _json(200, {"cleared": self.faults.clear(parameters.get("kind", "all"))})
            case "POST", fault if fault.startswith("fault/"):
                return _json(200, self.faults.create(fault.removeprefix("fault/"), parameters))
            case "GET", "quotas":
                with self._cloud.lock:
                    return _json(200, service_quotas.list_quotas(parameters))
            case "POST", "quota":
                with self._cloud.lock:
                    changed = service_quotas.set_quota(parameters)
                    self._cloud.changed()
                return _json(200, changed)
            case "POST", "session":
                with self._cloud.lock:
                    session = role_session(parameters.get("role", ""))
                    self._cloud.changed()
                return _json(200, session)
            case "POST", "reset":
                self._cloud.reset()
                return _json(200, {})
            case "POST", "stop":
                self._stop()
                return _json(200, {})
        return _json(404, {"problem": f"unknown control request {method} {path}"})


def _read_body(environ: dict[str, Any]) -> bytes:
    """The whole body, read before the lock is taken; the application can read it again."""
    if environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        body = bytes(environ["wsgi.input"].read())
    else:
        body = bytes(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def _is_web_page(answer: Response, call: Call) -> bool:
    """True for moto's HTML page for an unknown path; buckets may serve HTML themselves."""
    return answer.status_code in (404, 405, 500) and answer.mimetype == "text/html" and call.service != "s3"


def _json(status: int, content: Mapping[str, Any]) -> HttpResponse:
    return status, {"Content-Type": "application/json"}, json.dumps(content).encode()
