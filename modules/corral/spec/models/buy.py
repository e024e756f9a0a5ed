"""The fields of a purchase file: purchase price and running costs, to compare buying with renting."""

from __future__ import annotations

from pydantic import Field

from corral.spec.models.base_model import SpecRecord


class BuySpec(SpecRecord):
    """A purchase file, `--buy buy.yaml`: servers with a queue's accelerators that you would buy and run yourself."""

    queue: str | None = Field(
        default=None, description="The queue whose machines the servers would replace. Default: the first queue."
    )
    accelerator: str | None = Field(
        default=None,
        description="The accelerator that the prices apply to, such as H100-80; must match the queue's. Default: not"
        " checked.",
    )
    servers: int | None = Field(
        default=None,
        ge=1,
        description="Number of servers. Default: enough for as many accelerators as the whole queue has.",
    )
    accelerators_per_server: int = Field(default=8, ge=1, le=1024, description="Accelerators per server. Default: 8.")
    usd_per_accelerator: float = Field(ge=0, description="Price of an accelerator; 0 if usd_per_server includes it.")
    usd_per_server: float = Field(
        ge=0, description="Price of a server without accelerators, with its share of network, racks and storage."
    )
    kw_per_server: float | None = Field(
        default=None,
        gt=0,
        description="Maximum power of a server in kW, with its share of the network. Default: that of the published"
        " server with these accelerators, plus 10 % for the network.",
    )
    usd_per_kwh: float = Field(ge=0, description="Price of electricity; 0 if usd_per_kw_month includes it.")
    pue: float = Field(ge=1, le=10, description="Power usage effectiveness: the site's power per kW of computers.")
    usd_per_kw_month: float = Field(
        default=0, ge=0, description="Colocation price per kW of maximum server power and month. Default: 0."
    )
    usd_staff_per_year: float = Field(ge=0, description="Cost of all staff who run the servers.")
    upkeep: float = Field(
        default=0,
        ge=0,
        le=1,
        description="Repairs and support contracts per year, as a fraction of the purchase price. Default: 0.",
    )
    years: float = Field(gt=0, le=100, description="Depreciation period in years.")
    residual: float = Field(
        default=0,
        ge=0,
        lt=1,
        description="Resale value after that period, as a fraction of the purchase price. Default: 0.",
    )
    utilisation: float = Field(gt=0, le=1, description="Fraction of all hours in which the servers do work.")
