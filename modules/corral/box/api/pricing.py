"""The Price List API: GetProducts, with the catalog's prices. moto lacks this service; `wsgi_app` calls it here.

Source: AWS Price List API reference, GetProducts. Its endpoints in three regions serve the prices of all.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.core.request import Request
from moto.core.responses import ActionResult, BaseResponse

from corral.box.api.price_list import Product, products
from corral.box.api_errors import ApiError, HttpResponse

NAME = "pricing"
REGIONS = ("us-east-1", "eu-central-1", "ap-south-1")
PAGE = 100  # the largest page, and the default
MAX_FILTERS = 50
FORMAT = "aws_v1"


class BoxPricingResponse(BaseResponse):
    """The actions of the Price List API."""

    def __init__(self) -> None:
        super().__init__(service_name=NAME)
        self.automated_parameter_parsing = True

    def get_products(self) -> ActionResult:
        """GetProducts: the products that match all filters, in pages."""
        if self.region not in REGIONS:
            raise ApiError("InvalidSignatureException", "Credential should be scoped to a valid region.")
        service, filters = str(self._get_param("ServiceCode")), self._get_param("Filters", [])
        if service not in products():
            raise ApiError("NotFoundException", f"The service code {service} was not found.")
        if str(self._get_param("FormatVersion") or FORMAT) != FORMAT or len(filters) > MAX_FILTERS:
            raise ApiError("InvalidParameterException", "Input Parameters are invalid.")
        found = [product for product in products()[service] if all(_passes(product, one) for one in filters)]
        start, size = str(self._get_param("NextToken") or 0), int(self._get_param("MaxResults") or PAGE)
        if not start.isdigit():
            raise ApiError("InvalidNextTokenException", "The pagination token is invalid.")
        if not 1 <= size <= PAGE:
            raise ApiError("InvalidParameterException", f"MaxResults must be between 1 and {PAGE}.")
        end = int(start) + size
        page = [product.to_json() for product in found[int(start) : end]]
        following = {"NextToken": str(end)} if end < len(found) else {}
        return ActionResult({"FormatVersion": FORMAT, "PriceList": page, **following})


def answer_call(environ: Mapping[str, Any]) -> HttpResponse:
    """The response to a call of this service."""
    request = Request(environ)
    status, headers, body = BoxPricingResponse.dispatch(request, request.raw_url, dict(request.headers))
    text = body.encode() if isinstance(body, str) else bytes(body)
    return int(status), {str(name): str(value) for name, value in headers.items()}, text


def _passes(product: Product, wanted: Mapping[str, str]) -> bool:
    """Whether a product matches a filter; False if it lacks the field."""
    held, value = product.field(wanted["Field"]), wanted["Value"]
    if held is None:
        return False
    match wanted["Type"]:
        case "TERM_MATCH" | "EQUALS":
            return held == value
        case "CONTAINS":
            return value in held
        case "ANY_OF":
            return held in value.split(",")
        case "NONE_OF":
            return held not in value.split(",")
    raise ApiError("InvalidParameterException", f"Input Parameters are invalid. {wanted['Type']} is not a filter type.")
