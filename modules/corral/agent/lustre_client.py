"""How a machine is made a quick client of Lustre: options of its modules, and parameters of what it has mounted.

Pure. Parameters are lost when a file system is unmounted, and so at a reboot: a unit sets them at each mount.
Sources: FSx for Lustre User Guide, "Performance tips", for machines with more than 64 CPUs or 64 GiB; Lustre manual,
"Tuning the Client I/O RPC Stream": dirty data for 64 requests of 1 MiB, four times.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_LARGE_VCPUS = 64
_LARGE_MEMORY_MIB = 64 * 1024
MODULES = "/etc/modprobe.d/60-corral-lustre.conf"
# A request that changes something is one among all that are in flight, so their number has to grow first.
_ALWAYS = (
    "osc.*.max_rpcs_in_flight=64",
    "osc.*.max_dirty_mb=256",
    "mdc.*.max_rpcs_in_flight=64",
    "mdc.*.max_mod_rpcs_in_flight=50",
)
_LARGE_MEMORY = ("ldlm.namespaces.*.lru_max_age=600000",)  # ms
_LARGE_MODULES = "options ptlrpc ptlrpcd_per_cpt_max=32\noptions ksocklnd credits=2560\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a machine is."""

    vcpus: int
    memory_mib: int


def module_options(size: Size) -> str:
    """Lines for modprobe, to be there before the first mount; empty where the defaults will do."""
    return _LARGE_MODULES if size.vcpus > _LARGE_VCPUS else ""


def parameters(size: Size) -> tuple[str, ...]:
    """What `lctl set_param` is told once a file system is mounted."""
    return (*_ALWAYS, *_LARGE_MEMORY) if size.memory_mib > _LARGE_MEMORY_MIB else _ALWAYS


def tuning_unit(size: Size, mount: str) -> str:
    """The unit that tunes at each start of this mount unit. A parameter that a client does not know stops nothing."""
    return "\n".join(_unit_lines(size, mount))


def _unit_lines(size: Size, mount: str) -> Iterator[str]:
    yield from ("[Unit]", f"Description=corral: parameters of Lustre for {mount}", f"After={mount}", "")
    yield from ("[Service]", "Type=oneshot")
    yield from (f"ExecStart=-/usr/sbin/lctl set_param {parameter}" for parameter in parameters(size))
    yield from ("", "[Install]", f"WantedBy={mount}", "")
