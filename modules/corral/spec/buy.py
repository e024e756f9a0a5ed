"""What a user declares of hardware to buy, to compare it with renting: its price, and what it costs to run."""

from __future__ import annotations

from pydantic import Field

from corral.spec.record import SpecRecord


class BuySpec(SpecRecord):
    """A file of hardware: `--buy buy.yaml`. Servers with the accelerators of a queue, bought and run by oneself."""

    queue: str | None = Field(
        default=None, description="The queue whose machines they would replace. Default: the first one."
    )
    accelerator: str | None = Field(
        default=None,
        description="What the prices are of, such as H100-80: the queue must have the same. Default: not checked.",
    )
    servers: int | None = Field(
        default=None, ge=1, description="How many. Default: as many as have the accelerators of the whole queue."
    )
    cards_per_server: int = Field(default=8, ge=1, le=1024, description="Accelerators of a server. Default: 8.")
    usd_per_card: float = Field(ge=0, description="Price of an accelerator; 0 where it is in that of the server.")
    usd_per_server: float = Field(
        ge=0, description="Price of a server without its accelerators, with its part of network, racks and storage."
    )
    kw_per_server: float | None = Field(
        default=None,
        gt=0,
        description="The most that a server takes, with its part of the network, in kW. Default: that of the published"
        " server with these accelerators, and a tenth for the network.",
    )
    usd_per_kwh: float = Field(ge=0, description="Price of power; 0 where the site's price has it.")
    pue: float = Field(ge=1, le=10, description="Power of the site for each kW of its computers.")
    usd_per_kw_month: float = Field(
        default=0, ge=0, description="What a site takes for each kW that servers may take, a month. Default: 0."
    )
    usd_staff_per_year: float = Field(ge=0, description="People who run them, all together.")
    upkeep: float = Field(
        default=0, ge=0, le=1, description="Repairs and contracts a year, as part of the price of all. Default: 0."
    )
    years: float = Field(gt=0, le=100, description="How long until they are written off.")
    residual: float = Field(
        default=0, ge=0, lt=1, description="What they bring then, as part of the price of all. Default: 0."
    )
    utilisation: float = Field(gt=0, le=1, description="The part of all hours in which they would be at work.")
