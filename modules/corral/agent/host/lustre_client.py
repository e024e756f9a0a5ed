"""Tune the Lustre client: options of its kernel modules, parameters of its mounts, EFA.

Pure, except `efa_devices`. An unmount loses the parameters, so a unit sets them at each mount.
Sources: FSx for Lustre User Guide, "Performance tips", for machines with more than 64 CPUs or 64 GiB; Lustre manual,
"Tuning the Client I/O RPC Stream": dirty data for 64 requests of 1 MiB, four times. EFA: FSx for Lustre User Guide,
"Configuring EFA clients", Step 3; the commands one by one: EKS User Guide, "Optimize Amazon FSx for Lustre performance
on nodes (EFA)". AWS's setup script also sets libcfs's `cpu_npartitions` by type, which no page describes: left out.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
_PEER_CREDITS = 32  # of an EFA interface


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


def efa_devices(directory: Path, count: int) -> tuple[str, ...]:
    """This many EFA devices below sysfs's class infiniband, or fewer if fewer exist, as AWS's script chooses them.

    Two are the first and the last; more are spread evenly, such as every fourth of a p5.48xlarge.
    """
    drivers = {one.name: one / "device/driver" for one in directory.iterdir()} if directory.is_dir() else {}
    names = sorted((name for name, driver in drivers.items() if driver.resolve().name == "efa"), key=_by_number)
    if count == 2 and len(names) > 1:
        return (names[0], names[-1])
    step = max(1, len(names) // count)
    return tuple(names[::step][:count])


def default_interface(routes: str) -> str:
    """The interface of the default route with the lowest metric, from `ip -json -4 route show default`."""
    return str(min(json.loads(routes), key=lambda route: route.get("metric", 0))["dev"])


def efa_unit(interface: str, devices: Sequence[str], mounts: Sequence[str]) -> str:
    """The unit that adds these EFA devices to LNet, and this interface for TCP, before these mount units.

    A file system is mounted by its TCP address; LNet finds the others of its servers, and prefers EFA.
    """
    return "\n".join(_efa_unit_lines(interface, devices, " ".join(mounts)))


def _efa_unit_lines(interface: str, devices: Sequence[str], mounts: str) -> Iterator[str]:
    yield from ("[Unit]", "Description=corral: Lustre over EFA", "After=network-online.target")
    yield from ("Wants=network-online.target", f"Before={mounts}", "")
    yield from ("[Service]", "Type=oneshot", "RemainAfterExit=yes")
    # The mount of another file system starts a failed unit again; TCP must not go under one that is mounted.
    yield "ExecCondition=/bin/sh -c '! grep -q \" lustre \" /proc/mounts'"
    yield from ("ExecStart=/usr/sbin/modprobe lnet", f"ExecStart=/usr/sbin/modprobe kefalnd ipif_name={interface}")
    yield from ("ExecStart=/usr/sbin/modprobe ksocklnd", "ExecStart=/usr/sbin/lnetctl lnet configure")
    yield "ExecStart=-/usr/sbin/lnetctl net del --net tcp"  # configured by another interface, or not at all
    yield f"ExecStart=/usr/sbin/lnetctl net add --net tcp --if {interface}"
    for device in devices:
        yield f"ExecStart=/usr/sbin/lnetctl net add --net efa --if {device} --peer-credits {_PEER_CREDITS}"
    yield from ("ExecStart=/usr/sbin/lnetctl set discovery 1", "ExecStart=/usr/sbin/modprobe lustre")
    yield from (
        "ExecStart=/usr/sbin/lnetctl udsp add --src efa --priority 0",
        f"ExecStopPost=-/usr/sbin/lnetctl net add --net tcp --if {interface}",  # after a failure: the mounts use it
        "",
        "[Install]",
        f"WantedBy={mounts}",
        "",
    )


def _by_number(name: str) -> tuple[int, str]:
    """The key for devices in the order of their numbers: rdmap9s0 before rdmap100s0."""
    return len(name), name


def _unit_lines(size: MachineSize, mount: str) -> Iterator[str]:
    yield from ("[Unit]", f"Description=corral: parameters of Lustre for {mount}", f"After={mount}", "")
    yield from ("[Service]", "Type=oneshot")
    yield from (f"ExecStart=-/usr/sbin/lctl set_param {parameter}" for parameter in parameters(size))
    yield from ("", "[Install]", f"WantedBy={mount}", "")
