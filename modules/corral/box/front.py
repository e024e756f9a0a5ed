"""The WSGI application: every request goes through here, the box's own under /_box and the AWS calls to moto.

An AWS call holds the cloud's lock from its first look to the save of what it changed, and is logged when answered.
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

from corral.box import access, inventory, pricing, quotas, refusals
from corral.box.calls import Call, CallLog, error_code, identify, known_action
from corral.box.cloud import Cloud
from corral.box.faults import FaultError, Faults
from corral.box.process import MISTAKEN
from corral.box.quotas import QuotaError
from corral.box.refusals import Answer, Refused

StartResponse = Callable[..., Any]

PHRASES = {status.value: status.phrase for status in HTTPStatus}

log = logging.getLogger(__name__)


class Front:
    """The application that the daemon serves."""

    def __init__(self, cloud: Cloud, calls: CallLog, facts: Mapping[str, Any], stop: Callable[[], None]) -> None:
        self._cloud = cloud
        self._calls = calls
        self._facts = facts
        self._stop = stop
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._served: dict[str, bool] = {}
        self.faults = Faults(cloud)
        self.places: Callable[[], Mapping[str, Path]] = dict  # of machines, where instances are any

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request."""
        body = _read_body(environ)
        if environ.get("PATH_INFO", "").startswith("/_box/"):
            asked = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
            answer = self._safe_control(environ["REQUEST_METHOD"], environ["PATH_INFO"], asked)
        else:
            answer = self._call(environ, body)
        status, headers, content = answer
        if environ["REQUEST_METHOD"] != "HEAD":
            headers = {name: value for name, value in headers.items() if name.lower() != "content-length"}
            headers["Content-Length"] = str(len(content))
        start_response(f"{status} {PHRASES.get(status, 'Unknown')}", list(headers.items()))
        return [content]

    def _call(self, environ: dict[str, Any], body: bytes) -> Answer:
        call = identify(environ, body)
        with self._cloud.lock:
            self.faults.end_blocks()
            answer = self._answer(environ, call, body)
            if call.changes and answer[0] < 400:
                self._cloud.changed()
        self._calls.add(call, answer[0], error_code(answer[2]) if answer[0] >= 400 else None)
        return answer

    def _answer(self, environ: dict[str, Any], call: Call, body: bytes) -> Answer:
        try:
            if call.service and not self._is_served(environ, call.service):
                raise NotImplementedError(f"the service {call.service}")
            if call.action and not known_action(call):
                raise Refused("InvalidAction", f"The action {call.action} is not valid for {call.service}.")
            access.check(environ, call, body)
            self.faults.judge(call)
            if call.service == pricing.NAME:
                return pricing.answer(environ)
            answer = Response.from_app(self._moto, environ, buffered=True)
            if _is_web_page(answer, call):
                raise NotImplementedError(f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO')}")
            return answer.status_code, dict(answer.headers), answer.get_data()
        except Exception as error:
            refused = refusals.refusal_of(error, call)
            log.warning("%s:%s refused: %s", call.service, call.action, refused)
            return refusals.write(refused, call, environ.get("CONTENT_TYPE", ""))

    def _is_served(self, environ: dict[str, Any], service: str) -> bool:
        if service == pricing.NAME:
            return True
        if service not in self._served:
            host = self._moto.infer_service_region_host(environ, environ.get("PATH_INFO", ""))
            self._served[service] = bool(self._moto.get_backend_for_host(host))
        return self._served[service]

    def _safe_control(self, method: str, path: str, asked: Mapping[str, str]) -> Answer:
        try:
            return self._control(method, path, asked)
        except (FaultError, QuotaError) as error:
            return _json(MISTAKEN, {"problem": str(error)})
        except Exception as error:
            log.error("%s %s failed", method, path, exc_info=True)
            return _json(500, {"problem": f"{type(error).__name__}: {error} - see box.log"})

    def _control(self, method: str, path: str, asked: Mapping[str, str]) -> Answer:
        match method, path.removeprefix("/_box/"):
            case "GET", "health":
                faults = [one["line"] for one in self.faults.listed()]
                return _json(200, {**self._facts, "problem": self._cloud.problem, "faults": faults})
            case "GET", "inventory":
                with self._cloud.lock:
                    return _json(200, inventory.take())
            case "GET", "machines":
                return _json(200, {name: str(place) for name, place in self.places().items()})
            case "GET", "calls":
                return _json(200, {"calls": list(self._calls.latest)})
            case "GET", "faults":
                return _json(200, {"faults": self.faults.listed()})
            case "POST", "faults/clear":
                return _json(200, {"cleared": self.faults.clear(asked.get("kind", "all"))})
            case "POST", fault if fault.startswith("fault/"):
                return _json(200, self.faults.make(fault.removeprefix("fault/"), asked))
            case "GET", "quotas":
                with self._cloud.lock:
                    return _json(200, quotas.listed(asked))
            case "POST", "quota":
                with self._cloud.lock:
                    changed = quotas.change(asked)
                    self._cloud.changed()
                return _json(200, changed)
            case "POST", "reset":
                self._cloud.reset()
                return _json(200, {})
            case "POST", "stop":
                self._stop()
                return _json(200, {})
        return _json(404, {"problem": f"the box has no {method} {path}"})


def _read_body(environ: dict[str, Any]) -> bytes:
    """The whole body, which the application can read again: nothing waits on a client while it holds the lock."""
    if environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        body = bytes(environ["wsgi.input"].read())
    else:
        body = bytes(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def _is_web_page(answer: Response, call: Call) -> bool:
    """True for the page with which moto says that it has no such path; buckets may serve pages of their own."""
    return answer.status_code in (404, 405, 500) and answer.mimetype == "text/html" and call.service != "s3"


def _json(status: int, content: Mapping[str, Any]) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(content).encode()
