"""The VPC's DHCP server: its replies to the bytes of clients, and a client of the system that gets a lease from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.box.vpc.capabilities import probe_host
from corral.box.vpc.dhcp import DhcpSettings, Lease, receiver_of, reply_to

FIXTURE = Path(__file__).parents[1] / "dhcp_client_fixture.py"
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"  # a user's often lacks the client's directory
MAC, OWN, OTHER = "02010a40010b", "0a40010b", "0a400163"
SETTINGS = DhcpSettings(resolver=IPv4Address("10.64.0.2"), domain_name="ec2.internal")
LEASES = {"02:01:0a:40:01:0b": Lease(address=IPv4Interface("10.64.1.11/24"), host_name="ip-10-64-1-11")}
COOKIE = "63825363"
# Messages of the client: those with a server choose an offer, those with an address alone follow a reboot.
DISCOVER, REQUEST, DECLINE, RELEASE, INFORM = (f"3501{kind:02x}" for kind in (1, 3, 4, 7, 8))
OURS, THEIRS = "36040a400101", "36040a4001fe"
CONFIGURATION = {
    54: "0a400101",
    1: "ffffff00",
    3: "0a400101",
    6: "0a400002",
    12: b"ip-10-64-1-11".hex(),
    15: b"ec2.internal".hex(),
    28: "0a4001ff",
}
TIMES = {51: "00000e10", 58: "00000708", 59: "00000c4e"}
# The first message of udhcpc 1.35.0, and the offer.
DISCOVER_OF_UDHCPC = (
    "010106007aae0347" + "0000" * 2 + "00000000" * 4 + MAC + "00" * 10 + "00" * 192 + COOKIE
    + "350101" + "39020240" + "3707" + "0103060c0f1c2a" + "3c0c" + b"udhcp 1.35.0".hex() + "3d0701" + MAC + "ff"
    + "00" * 20
)  # fmt: skip
OFFER = (
    "020106007aae0347" + "0000" * 2 + "00000000" + OWN + "00000000" * 2 + MAC + "00" * 10 + "00" * 192 + COOKIE
    + "350102" + "36040a400101" + "330400000e10" + "3a0400000708" + "3b0400000c4e" + "0104ffffff00" + "03040a400101"
    + "06040a400002" + "0c0d" + b"ip-10-64-1-11".hex() + "0f0c" + b"ec2.internal".hex() + "1c040a4001ff"
    + "3d0701" + MAC + "ff"
)  # fmt: skip


def message(options: str, *, address: str = "00000000", mac: str = MAC, relay: str = "00000000") -> bytes:
    """A client's message with these options."""
    header = f"0101060011223344{'0000' * 2}{address}{'00000000' * 2}{relay}{mac}{'00' * 10}{'00' * 192}{COOKIE}"
    return bytes.fromhex(f"{header}{options}ff")


def reply(request: bytes, settings: DhcpSettings = SETTINGS) -> bytes:
    return reply_to(request, LEASES, settings)


def options_of(reply: bytes) -> Mapping[int, str]:
    """The options by code, in hexadecimal."""
    found, rest = {}, reply[240:].rstrip(b"\0").removesuffix(b"\xff")
    while rest:
        found[rest[0]], rest = rest[2 : 2 + rest[1]].hex(), rest[2 + rest[1] :]
    return found


def test_a_discover_gets_an_offer() -> None:
    assert reply(bytes.fromhex(DISCOVER_OF_UDHCPC)) == bytes.fromhex(OFFER).ljust(300, b"\0")


@pytest.mark.parametrize(
    ("options", "address"),
    [
        (f"{REQUEST}3204{OWN}{OURS}", "00000000"),  # after an offer
        (f"{REQUEST}3204{OWN}", "00000000"),  # after a reboot
        (REQUEST, OWN),  # renewal
        (f"00{REQUEST}00003204{OWN}", "00000000"),  # with padding
    ],
)
def test_a_request_for_the_address_of_the_machine_is_acknowledged(options: str, address: str) -> None:
    answer = reply(message(options, address=address))
    assert (answer[12:16].hex(), answer[16:20].hex(), options_of(answer)) == (
        address,
        OWN,
        {53: "05", **TIMES, **CONFIGURATION},
    )


@pytest.mark.parametrize(
    ("options", "address"),
    [
        (f"{REQUEST}3204{OTHER}{OURS}", "00000000"),
        (f"{REQUEST}3204{OTHER}", "00000000"),
        (REQUEST, OTHER),
        (REQUEST, "00000000"),
        (f"{REQUEST}3201{OWN[:2]}", "00000000"),
    ],
)
def test_a_request_for_another_address_is_refused(options: str, address: str) -> None:
    answer = reply(message(options, address=address))
    assert (answer[12:20].hex(), options_of(answer)) == ("00000000" * 2, {53: "06", 54: "0a400101"})


def test_an_inform_gets_the_configuration_without_a_lease() -> None:
    answer = reply(message(INFORM, address=OWN))
    assert (answer[16:20].hex(), options_of(answer)) == ("00000000", {53: "05", **CONFIGURATION})


@pytest.mark.parametrize(
    "request_",
    [
        message(DISCOVER, mac="02010a400163"),
        message(f"{REQUEST}3204{OWN}", mac="02010a400163"),
        message(f"{REQUEST}3204{OWN}{THEIRS}"),
        message(INFORM, address=OTHER),
        message(f"{DECLINE}3204{OWN}{OURS}"),
        message(f"{RELEASE}{OURS}", address=OWN),
        message(DISCOVER, relay="0a4000fd"),
        message("350105"),  # an ACK
        message("35020101"),
        message(""),  # BOOTP
        message(f"{DISCOVER}0c09aa"),  # cut off
        message(f"{DISCOVER}0c")[:-1],
        bytes.fromhex(OFFER),
        message(DISCOVER)[:239],
        message(DISCOVER).replace(bytes.fromhex(COOKIE), bytes(4)),
        message(DISCOVER).replace(bytes.fromhex("01010600"), bytes.fromhex("01060600")),  # not Ethernet
        b"",
    ],
)
def test_an_invalid_message_or_one_that_needs_none_gets_no_reply(request_: bytes) -> None:
    assert reply(request_) == b""


def test_a_machine_that_ended_gets_no_reply() -> None:
    assert reply_to(message(f"{REQUEST}3204{OWN}"), {}, SETTINGS) == b""


def test_the_mtu_is_sent_if_there_is_one() -> None:
    settings = DhcpSettings(resolver=SETTINGS.resolver, domain_name="ec2.internal", mtu=9001)
    assert options_of(reply(message(DISCOVER), settings))[26] == "2329"


@pytest.mark.parametrize(
    ("request_", "receiver"),
    [
        (message(DISCOVER), "255.255.255.255"),
        (message(DISCOVER, address=OTHER), "255.255.255.255"),
        (message(f"{REQUEST}3204{OWN}"), "255.255.255.255"),
        (message(REQUEST, address=OWN), "10.64.1.11"),
        (message(REQUEST, address=OTHER), "255.255.255.255"),
        (message(INFORM, address=OWN), "10.64.1.11"),
    ],
)
def test_a_client_with_its_address_gets_the_reply_there(request_: bytes, receiver: str) -> None:
    assert receiver_of(reply(request_)) == receiver


@given(st.binary(max_size=600))
def test_no_message_raises(options: bytes) -> None:
    for kind in (DISCOVER, REQUEST, INFORM, ""):
        reply(message(kind, address=OWN)[:-1] + options)
    reply(options)


SCRIPT = """#!/bin/sh
echo "$1" ip=$ip mask=$mask router=$router dns=$dns domain=$domain hostname=$hostname mtu=$mtu lease=$lease
case $1 in
bound) ip address add "$ip/$mask" dev eth0; kill -USR1 "$PPID";; # renew now, from the address
renew) kill "$PPID";;
esac
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script that the client calls."""
    path = tmp_path / "script"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    return path


def lines_of_client(mac: str, script: Path, tries: int) -> list[str]:
    """What the script printed, by the client with this MAC address."""
    assert probe_host().users, probe_host().problem
    new = ["unshare", *probe_host().user_namespace_options, "--net"]
    command = [*new, sys.executable, str(FIXTURE), mac, str(script), str(tries)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": PATH}, check=False)
    return [line for line in done.stdout.splitlines() if not line.startswith("udhcpc:")]


needs_client = pytest.mark.skipif(
    shutil.which("udhcpc", path=PATH) is None, reason="udhcpc is missing: apt-get install udhcpc"
)


@pytest.mark.box
@needs_client
def test_a_client_of_the_system_gets_its_lease_and_renews_it(script: Path) -> None:
    lease = (
        "ip=10.64.1.11 mask=24 router=10.64.1.1 dns=10.64.0.2 domain=ec2.internal hostname=ip-10-64-1-11 mtu=1400"
        " lease=3600"
    )
    assert lines_of_client("02:01:0a:40:01:0b", script, 20)[1:] == [f"bound {lease}", f"renew {lease}"]


@pytest.mark.box
@needs_client
def test_a_client_of_an_unknown_machine_gets_no_lease(script: Path) -> None:
    assert [line.split()[0] for line in lines_of_client("02:01:0a:40:01:63", script, 1)] == ["deconfig", "leasefail"]
