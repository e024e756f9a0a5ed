"""AWS errors: `ApiError`, which the box's services raise, and its serialization in the protocol of the service.

An action or filter that moto lacks becomes an AWS error with its name.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import json
import logging
import re
from typing import Any

from botocore.model import OperationNotFoundError
from moto.core.exceptions import ServiceException
from moto.core.model import OperationModel
from moto.core.request import determine_request_protocol
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

from corral.box.api_calls import Call

HttpResponse = tuple[int, dict[str, str], bytes]

UNKNOWN_FILTER = re.compile(r"[Ff]ilter.* '([^']+)'")

log = logging.getLogger(__name__)


class ApiError(ServiceException):
    """An AWS error with its code. moto cannot serialize its own base class."""

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        """`status`: the HTTP status (default: 400, as for most errors of EC2)."""
        super().__init__(code, message)
        self.status = status


def to_api_error(error: Exception, call: Call) -> ApiError:
    """The AWS error for an exception of moto; the traceback of a defect goes to the log."""
    name = f"{call.service}:{call.action or '?'}"
    if isinstance(error, ApiError):
        return error
    if isinstance(error, NotImplementedError):
        if unknown := UNKNOWN_FILTER.search(str(error)):
            return ApiError("InvalidFilter", f"The box does not know the filter '{unknown[1]}' of {name}.")
        return ApiError("InvalidAction", f"The box does not know the action {name}: {error}")
    log.error("%s failed in the box", name, exc_info=error)
    return ApiError("BoxInternalError", f"{name} failed in the box ({type(error).__name__}: {error}) - see box.log")


def serialize_error(refused: ApiError, call: Call, content_type: str) -> HttpResponse:
    """The HTTP response that makes a client of this service raise the error."""
    try:
        service = get_service_model(call.service)
        protocol = determine_request_protocol(service, content_type)
        written = get_serializer_class(service.service_name, protocol)(
            operation_model=_operation(service, call.action)
        ).serialize(refused)
    except Exception:  # a service that moto does not have at all
        body = json.dumps({"__type": refused.code, "message": refused.message}).encode()
        return (
            refused.status or 400,
            {"Content-Type": "application/x-amz-json-1.1", "x-amzn-errortype": refused.code},
            body,
        )
    body = written["body"]
    headers = {str(name): str(value) for name, value in written["headers"].items()}
    return (
        refused.status or int(written["status_code"]),
        headers,
        body.encode() if isinstance(body, str) else bytes(body),
    )


def _operation(service: Any, action: str) -> Any:
    try:
        return service.operation_model(action)
    except OperationNotFoundError:
        return OperationModel({}, service)
