"""The process of a VPC, the first in its namespaces: `python -m corral.box.vpc.namespace_init DIRECTORY NETWORK`.

It owns the network of all machines (`bridge`), starts and kills machines (`running_machines`), relays their requests
to the daemon (`relay`), serves DNS (`resolver`), and runs until its standard input ends. A connection on
DIRECTORY/control.sock carries one request and one response, a line of JSON each; the directory's permissions protect
it. A connection with the request `events` gets a line for each machine that exits; the daemon decides what follows.

This module and those above import only the standard library and dnslib, because it starts with every VPC.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from corral.box.vpc import namespace_machines, virtual_machines
from corral.box.vpc.bridge import add_address, create_bridge
from corral.box.vpc.load_balancers import Listeners
from corral.box.vpc.machine_users import create_machine_users
from corral.box.vpc.relay import HTTP, connect_to_machine, relay_to_daemon
from corral.box.vpc.resolver import serve_dns
from corral.box.vpc.running_machines import MachineKind, run_command
from corral.box.vpc.vpc_state import CONTROL_SOCKET, METADATA_ADDRESS, Request, VpcState

_LINE = 65536


def main() -> int:
    """Serve until standard input ends; everything in the namespaces ends with this process."""
    directory, network = Path(sys.argv[1]), IPv4Network(sys.argv[2])
    kind: MachineKind = virtual_machines if sys.argv[3:] == ["vm"] else namespace_machines
    vpc = VpcState(directory=directory, network=network, users=create_machine_users())
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # the parent may ignore them, and machines would inherit that
    create_bridge(vpc)
    kind.prepare(vpc)
    for address in (METADATA_ADDRESS, vpc.router):
        listener = socket.create_server((address, HTTP), backlog=512)
        _in_background(
            _accept, listener, lambda caller, peer, called=address: relay_to_daemon(directory, caller, peer, called)
        )
    _in_background(serve_dns, vpc.resolver, vpc.names)
    control = socket.socket(socket.AF_UNIX)
    path = directory / CONTROL_SOCKET
    path.unlink(missing_ok=True)
    control.bind(str(path))
    control.listen(512)
    listeners = Listeners(vpc)
    _in_background(_accept, control, lambda caller, _: _serve(kind, vpc, listeners, caller))
    print("ready", flush=True)  # noqa: T201 - the parent waits for this line
    sys.stdin.buffer.read()
    return 0


def _in_background(function: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=function, args=arguments, daemon=True).start()


def _accept(listener: socket.socket, serve: Callable[[socket.socket, Any], None]) -> None:
    while True:
        caller, peer = listener.accept()
        _in_background(serve, caller, peer)


def _serve(kind: MachineKind, vpc: VpcState, listeners: Listeners, caller: socket.socket) -> None:
    """Answer one request."""
    with caller:
        line, descriptors, _, _ = socket.recv_fds(caller, _LINE, 3)
        while line and not line.endswith(b"\n"):
            more = caller.recv(_LINE)
            line = line + more if more else b""
        request = json.loads(line or b"{}")
        try:
            match request.get("action"):
                case "connect":
                    connect_to_machine(caller, request["address"], request["port"])
                    return
                case "events":
                    _follow(vpc, caller)
                    return
                case "run":
                    response = run_command(kind, vpc, request, descriptors, caller)
                case "set-listeners":
                    listeners.replace(request["listeners"])
                    response = {}
                case _:
                    response = _act(kind, vpc, request)
        except ValueError as error:
            response = {"problem": str(error)}
        except (OSError, KeyError, subprocess.SubprocessError) as error:
            response = {"problem": f"{type(error).__name__}: {error}"}
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        with contextlib.suppress(OSError):  # the caller may have disconnected
            caller.sendall(json.dumps(response).encode() + b"\n")


def _act(kind: MachineKind, vpc: VpcState, request: Request) -> Mapping[str, Any]:
    match request["action"]:
        case "start":
            kind.start_machine(vpc, request)
        case "list":
            with vpc.lock:
                return {name: machine.address for name, machine in vpc.machines.items()}
        case "kill":
            os.kill(vpc.machine(request["name"]).pid, signal.SIGKILL)
        case "shut-down":
            kind.shut_down(vpc.machine(request["name"]))
        case "disconnect":
            kind.disconnect(vpc, vpc.machine(request["name"]))
        case "reconnect":
            kind.reconnect(vpc.machine(request["name"]))
        case "freeze":
            kind.freeze(vpc.machine(request["name"]))
        case "thaw":
            kind.thaw(vpc.machine(request["name"]))
        case "attach-volume":
            kind.attach_volume(vpc, request["name"], request["label"], request["source"])
        case "detach-volume":
            kind.detach_volume(vpc, request["name"], request["label"])
        case "serve":
            _serve_at(vpc, request)
        case "set-names":
            vpc.names.update(request["names"])  # first, so that a retained name always resolves
            for name in vpc.names.keys() - request["names"].keys():
                del vpc.names[name]
        case unknown:
            raise ValueError(f"unknown request {unknown!r}")
    return {}


def _serve_at(vpc: VpcState, request: Request) -> None:
    """Run a server at an address of its own, unless it runs."""
    held = vpc.servers.get(request["address"])
    if held is not None and held.poll() is None:
        return
    add_address(vpc, request["address"])
    log = vpc.directory / f"{request['address']}.log"
    with log.open("ab") as output:
        vpc.servers[request["address"]] = subprocess.Popen(
            request["command"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=request["environment"]
        )


def _follow(vpc: VpcState, caller: socket.socket) -> None:
    """Send this caller a line for each machine that exits, until it disconnects."""
    with vpc.lock:
        caller.sendall(b"{}\n")  # before any exit
        vpc.listeners.append(caller)
    with contextlib.suppress(OSError):
        while caller.recv(_LINE):
            pass
    with vpc.lock:
        vpc.listeners.remove(caller)


if __name__ == "__main__":
    sys.exit(main())
