"""A program that runs a DHCP client of the system against the box's server: `dhcp_client_fixture.py MAC SCRIPT TRIES`.

It runs in network and user namespaces of its own, as tests/box/vpc/test_dhcp.py starts it: the server on a bridge that
is like a VPC's, the client at a link with this MAC address in another namespace. The client calls the script.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from ipaddress import IPv4Address, IPv4Interface

from corral.box.vpc.dhcp import DhcpSettings, Lease, serve_dhcp

SETTINGS = DhcpSettings(
    resolver=IPv4Address("10.64.0.2"),
    domain_name="ec2.internal",
    mtu=1400,
)
LEASES = {
    "02:01:0a:40:01:0b": Lease(address=IPv4Interface("10.64.1.11/24"), host_name="ip-10-64-1-11"),
    "02:01:0a:40:01:0c": Lease(address=IPv4Interface("10.64.1.12/24"), host_name="ip-10-64-1-12"),
}
BRIDGE = """
link set lo up
link add br0 address 02:00:00:00:00:01 type bridge
address add 10.64.0.1/16 dev br0
address add 10.64.1.1/16 dev br0
address add 10.64.0.2/16 dev br0
link set br0 up
"""
# -A: before it looks for a server again, -t and -T: tries, a second apart, before it exits with 1.
CLIENT = 'echo ready; read -r linked; ip link set eth0 up; exec udhcpc -f -n -i eth0 -t "$2" -T 1 -A 1 -s "$1" 2>&1'


def ip(lines: str) -> None:
    """Run these commands of `ip`."""
    subprocess.run(["ip", "-batch", "-"], input=lines, text=True, check=True)


def main() -> int:
    """Print what the client and its script print, and return the client's exit code."""
    mac, *arguments = sys.argv[1:]
    ip(BRIDGE)
    threading.Thread(target=serve_dhcp, args=("br0", SETTINGS, LEASES), daemon=True).start()
    command = ["unshare", "--net", "sh", "-c", CLIENT, "sh", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout
        client.stdout.readline()  # it is in its namespace
        ip(f"link add link1 type veth peer name eth0 address {mac} netns {client.pid}\nlink set link1 master br0 up\n")
        sys.stdout.write(client.communicate("linked\n")[0])
    return client.returncode


if __name__ == "__main__":
    sys.exit(main())
