"""Service Quotas: the account's quotas by region. A new box's account has raised quotas for P, G, Trn and Standard.

Only the catalog's quotas exist here. `ec2_capacity.quota_enforcement` enforces some of them.
Source of the actions: Service Quotas API reference.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import moto.servicequotas.urls
from moto.core.responses import ActionResult, BaseResponse
from moto.servicequotas.models import ServiceQuotasBackend

from corral.box.account import ACCOUNT, REGION
from corral.box.api_errors import ApiError
from corral.catalog.aws.quota_defaults import Quota, find_quota, quotas
from corral.catalog.aws.regions import find_region
from corral.catalog.loader.suggestions import UnknownName

PAGE = 100  # the largest page, and the default
SERVICES = {
    "ebs": "Amazon Elastic Block Store (Amazon EBS)",
    "ec2": "Amazon Elastic Compute Cloud (Amazon EC2)",
    "elasticfilesystem": "Amazon Elastic File System (EFS)",
    "fsx": "Amazon FSx",
    "vpc": "Amazon Virtual Private Cloud (Amazon VPC)",
}
# vCPUs of a new box's account: enough for the environments `dev`, `train` and `mixed` at their maximum size in each
# market, with their heads. The codes are on demand and spot, then Capacity Blocks.
_P, _G, _TRN, _STANDARD = 4608.0, 768.0, 768.0, 1152.0
RAISED = {
    **dict.fromkeys(("L-417A185B", "L-7212CCBC", "L-C4BD4855"), _P),
    **dict.fromkeys(("L-2C8F52B3", "L-DA6814F2", "L-C45F30BC", "L-4F9BB70B"), _P),
    **dict.fromkeys(("L-DB2E81BA", "L-3819A6DF"), _G),
    **dict.fromkeys(("L-2C3B7624", "L-6B0D517C", "L-2E30FD7D", "L-64569A79"), _TRN),
    **dict.fromkeys(("L-1216C47A", "L-34B43A08"), _STANDARD),
}


class QuotaError(Exception):
    """A quota that cannot be set; the text is a sentence for the user."""


class BoxServiceQuotas(ServiceQuotasBackend):
    """The quotas of one account and region. `changed`: values set by `corral box quota`, by code."""

    _url_module = moto.servicequotas.urls

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.changed: dict[str, float] = {}

    def applied(self, quota: Quota) -> float:
        """The applied value."""
        return self.changed.get(quota.code, RAISED.get(quota.code, quota.default))


class BoxServiceQuotasResponse(BaseResponse):
    """The read-only actions of Service Quotas."""

    def __init__(self) -> None:
        super().__init__(service_name="service-quotas")
        self.automated_parameter_parsing = True

    @property
    def backend(self) -> BoxServiceQuotas:
        """The backend of the call."""
        backend: BoxServiceQuotas = _backend(self.current_account, self.region)
        return backend

    def list_service_quotas(self) -> ActionResult:
        """ListServiceQuotas: the applied values of a service."""
        return self._listed([self._applied(quota) for quota in self._of_service()])

    def list_aws_default_service_quotas(self) -> ActionResult:
        """ListAWSDefaultServiceQuotas: the defaults of a service."""
        return self._listed([self._default(quota) for quota in self._of_service()])

    def get_service_quota(self) -> ActionResult:
        """GetServiceQuota: the applied value."""
        return ActionResult({"Quota": self._applied(self._named())})

    def get_aws_default_service_quota(self) -> ActionResult:
        """GetAWSDefaultServiceQuota: the default."""
        return ActionResult({"Quota": self._default(self._named())})

    def _of_service(self) -> list[Quota]:
        service = str(self._get_param("ServiceCode"))
        if service not in SERVICES:
            raise _unknown("service")
        found = [quota for quota in quotas().values() if quota.service == service]
        code = self._get_param("QuotaCode")
        return [quota for quota in found if code in (None, quota.code)]

    def _named(self) -> Quota:
        quota = next((one for one in self._of_service() if one.code == self._get_param("QuotaCode")), None)
        if quota is None:
            raise _unknown("service quota")
        return quota

    def _listed(self, shown: list[dict[str, Any]]) -> ActionResult:
        start, size = str(self._get_param("NextToken") or 0), int(self._get_param("MaxResults") or PAGE)
        if not start.isdigit():
            raise ApiError("InvalidPaginationTokenException", "Invalid token was used.")
        if not 1 <= size <= PAGE:
            raise ApiError("IllegalArgumentException", f"MaxResults must be between 1 and {PAGE}.")
        end = int(start) + size
        following = {"NextToken": str(end)} if end < len(shown) else {}
        return ActionResult({"Quotas": shown[int(start) : end], **following})

    def _applied(self, quota: Quota) -> dict[str, Any]:
        own = {"Value": self.backend.applied(quota), "QuotaAppliedAtLevel": "ACCOUNT"}
        return {**_described(quota), "QuotaArn": self._arn(quota, self.current_account), **own}

    def _default(self, quota: Quota) -> dict[str, Any]:
        return {**_described(quota), "QuotaArn": self._arn(quota, ""), "Value": quota.default}

    def _arn(self, quota: Quota, account: str) -> str:
        return f"arn:{self.partition}:servicequotas:{self.region}:{account}:{quota.service}/{quota.code}"


def install() -> None:
    """Replace moto's Service Quotas with the box's."""
    from moto.servicequotas.models import servicequotas_backends

    moto.servicequotas.urls.url_paths["{0}/$"] = BoxServiceQuotasResponse.dispatch
    servicequotas_backends.backend = BoxServiceQuotas


def applied(quota: Quota, region: str) -> float:
    """The applied value in this region. Hold the cloud's lock."""
    return float(_backend(ACCOUNT, region).applied(quota))


def set_quota(parameters: Mapping[str, str]) -> dict[str, Any]:
    """Set the quota of this `code` to this `value` in this `region` and return it. Raises QuotaError."""
    region = _region(parameters)
    try:
        quota = find_quota(parameters["code"])
    except UnknownName as error:
        raise QuotaError(f"unknown quota: {error}") from None
    _backend(ACCOUNT, region).changed[quota.code] = _value(parameters.get("value", ""))
    return row(quota, applied(quota, region))


def list_quotas(parameters: Mapping[str, str]) -> dict[str, Any]:
    """The quotas of this `region`: all, or the one of this `code`. Raises QuotaError."""
    region, found = _region(parameters), quotas()
    if "code" in parameters and parameters["code"] not in found:
        raise QuotaError(f"unknown quota: {UnknownName('quota', parameters['code'], found)}")
    chosen: Iterable[Quota] = [found[parameters["code"]]] if "code" in parameters else found.values()
    return {"region": region, "quotas": [row(quota, applied(quota, region)) for quota in chosen]}


def row(quota: Quota, value: float) -> dict[str, Any]:
    """A quota with its applied value, as `corral box quota` shows it."""
    return {
        "code": quota.code,
        "service": quota.service,
        "name": quota.name,
        "value": value,
        "default": quota.default,
        "unit": quota.unit,
    }


def _backend(account: str, region: str) -> Any:
    from moto.servicequotas.models import servicequotas_backends

    return servicequotas_backends[account][region]


def _described(quota: Quota) -> dict[str, Any]:
    return {
        "ServiceCode": quota.service,
        "ServiceName": SERVICES[quota.service],
        "QuotaCode": quota.code,
        "QuotaName": quota.name,
        "Unit": "None",
        "Adjustable": quota.adjustable,
        "GlobalQuota": False,
    }


def _unknown(what: str) -> ApiError:
    return ApiError("NoSuchResourceException", f"The request failed because the specified {what} does not exist.")


def _region(parameters: Mapping[str, str]) -> str:
    try:
        return find_region(parameters.get("region", REGION)).name
    except UnknownName as error:
        raise QuotaError(f"unknown region: {error}") from None


def _value(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise QuotaError(f"invalid quota value {text!r} - expected a number of 0 or more")
    return value
