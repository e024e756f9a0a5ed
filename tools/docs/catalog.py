"""The tables of docs/catalog.md, from the data. The text outside the marks is written by hand."""

from __future__ import annotations

from collections.abc import Mapping

from tools.docs.tables import filled, table

from corral.catalog.aws.images import ImageProfile, image_profiles
from corral.catalog.aws.instance_types import InstanceType, instance_types
from corral.catalog.aws.lustre import LustreDeployment, lustre_choices
from corral.catalog.aws.prices import capacity_block_price, instance_price, service_price
from corral.catalog.aws.regions import regions
from corral.catalog.aws.zone_offerings import offered_zones

_PRICED = "us-east-1"  # the region whose prices the page shows


def fill(page: str) -> str:
    """Return the page with new tables."""
    tables = {
        "accelerated": table(_accelerated(machine) for machine in _types(accelerated=True)),
        "plain": table(_plain(machine) for machine in _types(accelerated=False)),
        "lustre": table(_lustre(row) for row in lustre_choices()),
        "images": table(_image(profile) for profile in image_profiles().values() if not profile.box),
    }
    return filled(page, tables)


def _types(*, accelerated: bool) -> list[InstanceType]:
    """Sorted by family, then by size."""
    chosen = [machine for machine in instance_types().values() if bool(machine.accelerator) is accelerated]
    return sorted(chosen, key=lambda machine: (machine.family, machine.vcpus, machine.memory_mib))


def _accelerated(machine: InstanceType) -> Mapping[str, str]:
    accelerator = machine.accelerator
    assert accelerator is not None  # the caller filters by it
    link = f"{accelerator.link}, {accelerator.link_gb_per_s} GB/s" if accelerator.link else "-"
    return {
        "type": machine.name,
        "accelerators": f"{accelerator.count} x {accelerator.product} {_gib(accelerator.memory_mib)}",
        "link": link,
        **_machine(machine),
        "cards": str(len(machine.network_cards)),
        "EFA": str(machine.efa_maximum) if machine.efa_maximum else "-",
        "NVMe GB": f"{machine.nvme_count} x {machine.nvme_gb_each}" if machine.nvme_count else "-",
        "markets": " ".join(_MARKETS[market] for market in machine.markets),
        **_capacity_zones(machine),
    }


def _plain(machine: InstanceType) -> Mapping[str, str]:
    return {
        "type": machine.name,
        **_machine(machine),
        "EFA": str(machine.efa_maximum) if machine.efa_maximum else "-",
        **_capacity_zones(machine),
    }


_MARKETS = {"on-demand": "od", "spot": "spot", "capacity-block": "cb"}


def _machine(machine: InstanceType) -> Mapping[str, str]:
    ebs = "-" if machine.ebs_gbps is None else _range(machine.ebs_baseline_gbps, machine.ebs_gbps)
    return {
        "vCPUs": str(machine.vcpus),
        "memory": _gib(machine.memory_mib),
        "network Gbps": _range(machine.network_baseline_gbps, machine.network_gbps),
        "EBS Gbps": ebs,
    }


def _capacity_zones(machine: InstanceType) -> Mapping[str, str]:
    """The number of regions that offer it, and its prices."""
    price = instance_price(machine.name, _PRICED)
    offered = [region for region in regions() if offered_zones(machine.name, region)]
    usd = price.on_demand_usd_per_hour if price else None
    cells = {"regions": str(len(offered)), "od $/h": "-" if usd is None else f"{usd:g}"}
    if machine.accelerator:
        block = capacity_block_price(machine.name, _PRICED) if _PRICED in offered else None
        cells["cb $/h"] = f"{block.usd_per_hour:g}" if block else "-"
    return cells


def _lustre(row: LustreDeployment) -> Mapping[str, str]:
    price = service_price(row.price_name, _PRICED)
    steps = f"multiples of {row.step_gib}"
    return {
        "deployment": row.name,
        "sizes GiB": steps if row.smallest_gib == row.step_gib else f"{row.smallest_gib}, {steps}",
        "with EFA": f"multiples of {row.efa_step_gib}" if row.efa_step_gib else "-",
        "network": f"{row.network_baseline_mbps_per_tib} / {row.network_burst_mbps_per_tib}",
        "disk read": f"{row.disk_read_mbps_per_tib} / {row.disk_read_burst_mbps_per_tib}",
        "disk write": f"{row.disk_write_mbps_per_tib} / {row.disk_write_burst_mbps_per_tib}",
        "metadata IOPS": "yes" if row.metadata else "-",
        "SSD cache": "optional" if row.drive_cache else "-",
        "$/GiB month": f"{price.usd:g}" if price else "-",
    }


def _image(profile: ImageProfile) -> Mapping[str, str]:
    return {
        "profile": profile.name,
        "system": profile.system,
        "architecture": profile.architecture,
        "drivers": ", ".join(profile.drivers) or "-",
        "NVIDIA kernel modules": profile.kernel_modules or "-",
        "EFA": "yes" if profile.efa else "-",
        "Lustre client": "installed at boot" if profile.lustre_archive else "-",
        "user": profile.default_user,
        "Python": profile.python,
        "Slurm": profile.slurm_version,
    }


def _gib(mib: int) -> str:
    return f"{mib / 1024:.0f} GiB"


def _range(baseline: float | None, peak: float) -> str:
    return f"{peak:g}" if baseline is None or baseline == peak else f"{baseline:g} to {peak:g}"
