"""The network of a VPC: a bridge with the VPC's addresses, and a link to each machine."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Address

from corral.box.vpc.vpc_state import METADATA_ADDRESS, RunningMachine, VpcState

# Fixed: otherwise the bridge takes the lowest address of its ports, and each start or end of a machine cuts the others
# off from the metadata service until their ARP entries expire, half a minute later.
_BRIDGE_MAC = "02:00:00:00:00:01"
_DISABLED, _FORWARDING = "0", "3"  # states of a bridge's port. Source: linux/if_bridge.h


def create_bridge(vpc: VpcState) -> None:
    """Create the bridge with the addresses of the router, the resolver and the metadata service."""
    prefix = vpc.network.prefixlen
    _ip(
        "link set lo up",
        f"link add br0 address {_BRIDGE_MAC} type bridge",
        f"address add {vpc.router}/{prefix} dev br0",
        f"address add {vpc.resolver}/{prefix} dev br0",
        f"address add {METADATA_ADDRESS}/32 dev br0",
        "link set br0 up",
    )


def add_address(vpc: VpcState, address: str) -> None:
    """Give the bridge a further address, unless it has it."""
    _ip(f"address replace {address}/{vpc.network.prefixlen} dev br0")


def remove_address(vpc: VpcState, address: str) -> None:
    """Take an address of `add_address` from the bridge."""
    _ip(f"address delete {address}/{vpc.network.prefixlen} dev br0")


def add_link(link: str, address: str, pid: int) -> None:
    """Link the namespace of a process to the bridge, as its eth0. The bridge answers ARP requests for its address.

    The MAC address is derived from the IP address, so that a machine keeps it when it reboots, as an instance on EC2
    does. With another one, its neighbours would send to the old address for most of a minute. The bridge answers as
    long as the link exists, also for a disconnected machine; see `pin_neighbours`.
    """
    mac = _mac(address)
    _ip(
        f"link add {link} type veth peer name eth0 address {mac} netns {pid}",
        f"link set {link} master br0 up",
        f"link set {link} type bridge_slave proxy_arp on",
        f"neigh replace {address} lladdr {mac} dev br0 nud permanent",
    )
    _bridge("fdb", "replace", mac, "dev", link, "master", "static")


def remove_link(link: str) -> None:
    """Remove the link of an ended machine. The kernel does so later, and the bridge answers for it until then."""
    _ip(f"link delete {link}")


def add_tap(link: str, address: str, mac: str, owner: int) -> None:
    """Add a tap of this name to the bridge, for a program of this user that is a machine's network card."""
    _ip(
        f"tuntap add dev {link} mode tap user {owner}",
        f"link set {link} master br0 up",
        f"neigh replace {address} lladdr {mac} dev br0 nud permanent",
    )


def block_ports(links: Sequence[str]) -> None:
    """Drop all packets from and to these links. Their cards keep their carrier, as if EC2 dropped the packets."""
    for link in links:
        _bridge("link", "set", "dev", link, "state", _DISABLED)


def open_ports(links: Sequence[str]) -> None:
    """Undo `block_ports`."""
    for link in links:
        _bridge("link", "set", "dev", link, "state", _FORWARDING)


def pin_neighbours(vpc: VpcState, machine: RunningMachine) -> None:
    """Keep the MAC addresses of a machine's neighbours while its port is blocked.

    The others get them from the bridge, the machine from its permanent entries. Otherwise ARP fails after three
    requests, one a second, with "no route to host", also for a connection that starts just before the network is back.
    """
    with vpc.lock:
        others = [one.address for one in vpc.machines.values() if one.address != machine.address]
    known = {vpc.router: _BRIDGE_MAC, vpc.resolver: _BRIDGE_MAC} | {address: _mac(address) for address in others}
    _ip(*(f"neigh replace {at} lladdr {mac} dev eth0 nud permanent" for at, mac in known.items()), inside=machine)


def unpin_neighbours(machine: RunningMachine) -> None:
    """Undo `pin_neighbours`."""
    _ip("neigh flush dev eth0 nud permanent", inside=machine)


def _mac(address: str) -> str:
    return "02:01:" + IPv4Address(address).packed.hex(":")


def _ip(*lines: str, inside: RunningMachine | None = None) -> None:
    namespace = [] if inside is None else ["nsenter", f"--net=/proc/{inside.pid}/ns/net"]
    subprocess.run([*namespace, "ip", "-batch", "-"], input="\n".join(lines).encode(), check=True, capture_output=True)


def _bridge(*arguments: str) -> None:
    subprocess.run(["bridge", *arguments], check=True, capture_output=True)
