"""The rows of a project's own catalog.toml."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from corral.catalog.aws.instance_types import Vendor
from corral.spec.models.base_model import SpecRecord

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
_LAST_CARD = 255  # more than any machine has; each card becomes a record, and a typo must not fill the memory


class AcceleratorRow(SpecRecord):
    """The accelerators of a type, all equal."""

    vendor: Vendor = Field(description="nvidia or neuron; selects the driver.")
    product: str = Field(description="The vendor's product name, such as H100.")
    name: str | None = None
    count: Count = Field(description="Accelerators per machine.")
    memory_mib: Count = Field(description="Memory of one accelerator in MiB.")
    link: str | None = None
    link_gb_per_s: Count | None = None


class NetworkCardsRow(SpecRecord):
    """A range of equal network cards."""

    first: int = Field(ge=0, le=_LAST_CARD, description="Index of the first card in the range.")
    last: int = Field(ge=0, le=_LAST_CARD, description="Index of the last card in the range.")
    interface_types: tuple[Literal["interface", "efa", "efa-only"], ...] = Field(
        min_length=1, description="Interface types that the card supports."
    )
    maximum_interfaces: Count = Field(description="Maximum number of interfaces per card.")


class NvmeRow(SpecRecord):
    """Local disks."""

    count: Count = Field(description="Number of local disks.")
    gb_each: Count = Field(description="Size of one disk in GB.")


class InstanceRow(SpecRecord):
    """An instance type, with the keys of the shipped instances.toml."""

    architecture: Literal["x86_64", "arm64"] = Field(description="x86_64 or arm64.")
    vcpus: Count = Field(description="Cores times threads_per_core.")
    cores: Count = Field(description="Cores of all sockets.")
    threads_per_core: Count = Field(description="1 or 2.")
    sockets: Count = Field(description="Sockets, as shown by lscpu.")
    memory_mib: Count = Field(description="Memory in MiB, as stated by EC2.")
    accelerator: AcceleratorRow | None = None
    network_cards: tuple[NetworkCardsRow, ...] = Field(
        min_length=1, description="See NetworkInfo.NetworkCards of DescribeInstanceTypes."
    )
    network_gbps: Positive = Field(description="Maximum network bandwidth in Gbit/s.")
    network_baseline_gbps: Positive | None = None
    efa_maximum: int = Field(ge=0, description="Maximum number of EFA interfaces; 0 for none.")
    nvme: NvmeRow | None = None
    ebs_gbps: Positive | None = None
    ebs_baseline_gbps: Positive | None = None
    markets: tuple[Literal["on-demand", "spot", "capacity-block"], ...] = Field(
        min_length=1, description="Markets in which EC2 sells it."
    )
    source: str | None = None


class PriceRow(SpecRecord):
    """The prices of a type in a region, in USD per instance hour."""

    on_demand: Positive | None = None
    spot_min: Positive | None = None
    spot_max: Positive | None = None
    capacity_block: Positive | None = None
    as_of: date = Field(description="Date of these prices.", examples=["2026-11-21"])
    source: str | None = None


class CatalogFile(SpecRecord):
    """The whole file: types by name, prices by type and region."""

    instances: Mapping[str, InstanceRow] = {}
    prices: Mapping[str, Mapping[str, PriceRow]] = {}
