"""Smithy RPC v2 CBOR, the protocol of newer SDKs for CloudWatch: translated to and from JSON by the service's model.

moto has the JSON protocol only. Sources: smithy.io, "Smithy RPC v2 CBOR protocol"; botocore's service models.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from botocore.model import OperationModel, ServiceModel, Shape
from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from moto.core.utils import get_service_model

from corral.box.api_errors import HttpResponse

_PROTOCOL = "smithy-rpc-v2-cbor"
_HEADERS = {"Smithy-Protocol": "rpc-v2-cbor", "Content-Type": "application/cbor"}
_EMPTY = b"\xa0"  # a map without entries
_PATH = re.compile(r"/service/(?P<target>[^/]+)/operation/(?P<operation>\w+)")
_SERVICES = {"GraniteServiceVersion20100801": "cloudwatch"}  # those that the product uses, by target prefix

_ERROR = ServiceModel(
    {
        "metadata": {"protocol": _PROTOCOL, "targetPrefix": "", "serviceId": "errors"},
        "operations": {"Error": {"name": "Error", "http": {"method": "POST"}, "input": {"shape": "Error"}}},
        "shapes": {
            "Error": {"type": "structure", "members": {"__type": {"shape": "Text"}, "message": {"shape": "Text"}}},
            "Text": {"type": "string"},
        },
    }
).operation_model("Error")


def answer_in_protocol(
    environ: dict[str, Any], body: bytes, answer: Callable[[dict[str, Any], bytes], HttpResponse]
) -> HttpResponse:
    """The answer to an API call in its protocol. `answer` gets a call in CBOR as one in JSON.

    A call that the service's model does not have is passed on as it is, and refused there.
    """
    operation = _cbor_operation(environ)
    if operation is None:
        return answer(environ, body)
    status, headers, content = answer(*_in_json(environ, body, operation))
    if status >= 400:
        return status, headers | _HEADERS, _encoded(_error(content), _ERROR)
    shape = operation.output_shape
    answered = {"body": content, "headers": headers, "status_code": status}
    values = create_parser("json").parse(answered, shape) if shape else {}
    return status, headers | _HEADERS, _encoded(values, _with_input(operation, shape)) if shape else _EMPTY


def _cbor_operation(environ: Mapping[str, Any]) -> OperationModel | None:
    path = _PATH.fullmatch(environ.get("PATH_INFO", ""))
    if path is None or environ.get("HTTP_SMITHY_PROTOCOL") != "rpc-v2-cbor" or path["target"] not in _SERVICES:
        return None
    service: ServiceModel = get_service_model(_SERVICES[path["target"]])
    return service.operation_model(path["operation"]) if path["operation"] in service.operation_names else None


def _in_json(environ: dict[str, Any], body: bytes, operation: OperationModel) -> tuple[dict[str, Any], bytes]:
    sent = {"body": body, "headers": {}, "status_code": 200}
    values = create_parser(_PROTOCOL).parse(sent, operation.input_shape) if body and operation.input_shape else {}
    request = create_serializer("json", include_validation=False).serialize_to_request(_own(values), operation)
    content = bytes(request["body"])
    translated = environ | {
        "PATH_INFO": "/",
        "RAW_URI": "/",
        "REQUEST_URI": "/",
        "HTTP_X_AMZ_TARGET": request["headers"]["X-Amz-Target"],
        "CONTENT_TYPE": request["headers"]["Content-Type"],
        "CONTENT_LENGTH": str(len(content)),
        "wsgi.input": io.BytesIO(content),
    }
    return translated, content


def _with_input(operation: OperationModel, shape: Shape) -> OperationModel:
    """The operation with this shape as its input: botocore encodes only what a client sends."""
    as_request = {"name": operation.name, "http": operation.http, "input": {"shape": shape.name}}
    return OperationModel(as_request, operation.service_model)


def _encoded(values: Mapping[str, Any], operation: OperationModel) -> bytes:
    serializer = create_serializer(_PROTOCOL, include_validation=False)
    return bytes(serializer.serialize_to_request(_own(values), operation)["body"])


def _error(content: bytes) -> Mapping[str, str]:
    answered = json.loads(content)
    return {
        "__type": str(answered.get("__type", "")),
        "message": str(answered.get("message") or answered.get("Message") or ""),
    }


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a shape, without what botocore's parser adds."""
    return {name: value for name, value in values.items() if name != "ResponseMetadata"}
