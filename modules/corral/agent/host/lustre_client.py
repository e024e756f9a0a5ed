"""Tune the Lustre client: options of its kernel modules, and parameters of its mounts.

Pure. An unmount loses the parameters, so a unit sets them at each mount.
Sources: FSx for Lustre User Guide, "Performance tips", for machines with more than 64 CPUs or 64 GiB; Lustre manual,
"Tuning the Client I/O RPC Stream": dirty data for 64 requests of 1 MiB, four times.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_LARGE_VCPUS = 64
_LARGE_MEMORY_MIB = 64 * 1024
MODULES = "/etc/modprobe.d/60-corral-lustre.conf"
# Modifying requests count as requests in flight too, so raise that limit first.
_ALWAYS = (
    "osc.*.max_rpcs_in_flight=64",
    "osc.*.max_dirty_mb=256",
    "mdc.*.max_rpcs_in_flight=64",
    "mdc.*.max_mod_rpcs_in_flight=50",
)
_LARGE_MEMORY = ("ldlm.namespaces.*.lru_max_age=600000",)  # ms
_LARGE_MODULES = "options ptlrpc ptlrpcd_per_cpt_max=32\noptions ksocklnd credits=2560\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSize:
    """The size of a machine."""

    vcpus: int
    memory_mib: int


def module_options(size: MachineSize) -> str:
    """Lines for modprobe, needed before the first mount; empty if the defaults suffice."""
    return _LARGE_MODULES if size.vcpus > _LARGE_VCPUS else ""


def parameters(size: MachineSize) -> tuple[str, ...]:
    """The arguments of `lctl set_param` after a mount."""
    return (*_ALWAYS, *_LARGE_MEMORY) if size.memory_mib > _LARGE_MEMORY_MIB else _ALWAYS


def tuning_unit(size: MachineSize, mount: str) -> str:
    """The unit that tunes at each start of this mount unit. Unknown parameters are ignored."""
    return "\n".join(_unit_lines(size, mount))


def _unit_lines(size: MachineSize, mount: str) -> Iterator[str]:
    yield from ("[Unit]", f"Description=corral: parameters of Lustre for {mount}", f"After={mount}", "")
    yield from ("[Service]", "Type=oneshot")
    yield from (f"ExecStart=-/usr/sbin/lctl set_param {parameter}" for parameter in parameters(size))
    yield from ("", "[Install]", f"WantedBy={mount}", "")
