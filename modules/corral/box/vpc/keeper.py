"""The process that is a VPC: `python -m corral.box.vpc.keeper DIRECTORY NETWORK`, the first one of its namespaces.

It holds the bridge that all machines hang on, starts and ends them, answers for the router, the metadata service and
the resolver, and lives until its standard input ends. One request a connection, a line of JSON each way, on
DIRECTORY/keeper.sock; only whoever may enter the directory reaches it. What a machine's death is worth is the daemon's
business: it is told of each one on a connection that asked for `events`.

It imports the standard library alone, for it starts with every VPC.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from corral.box.vpc.resolver import serve_names

METADATA = "169.254.169.254"
SOCKET, OUTSIDE = "keeper.sock", "outside.sock"
HTTP = 80
# Said once: else a bridge takes the lowest address of its ports, and a machine that comes or goes cuts the others off
# from the metadata service until they ask anew who has its address, half a minute later.
_BRIDGE = "02:00:00:00:00:01"
_LINE = 65536
_START_TIMEOUT_S = 30
_SCRIPT = Path(__file__).with_name("machine.sh")

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A running machine. `process` waits for `pid`, the machine's first process, in the keeper's numbers."""

    process: subprocess.Popen[bytes]
    pid: int
    link: str
    address: str


@dataclass(slots=True, kw_only=True)
class Vpc:
    """All that changes in a keeper. `names`: addresses by name, as the private zones of the VPC have them."""

    directory: Path
    network: IPv4Network
    machines: dict[str, Machine] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    plugged: set[Path] = field(default_factory=set)
    listeners: list[socket.socket] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    links: int = 0

    @property
    def router(self) -> str:
        """The address of every machine's way out. Source: VPC User Guide, "Subnet CIDR blocks" (the first one)."""
        return str(self.network.network_address + 1)

    @property
    def resolver(self) -> str:
        """The address of the VPC's resolver. Source: VPC User Guide, "Amazon DNS": the base of the range plus two."""
        return str(self.network.network_address + 2)


def main() -> int:
    """Serves until standard input ends; then everything in the namespaces dies with this process."""
    directory, network = Path(sys.argv[1]), IPv4Network(sys.argv[2])
    vpc = Vpc(directory=directory, network=network)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # whoever started the box may ignore them; machines inherit it
    _lay_network(vpc)
    plugs = vpc.directory / "plugs"
    plugs.mkdir(exist_ok=True)
    for options in (("--bind", str(plugs), str(plugs)), ("--make-shared", str(plugs))):
        subprocess.run(["mount", *options], check=True, capture_output=True)
    for address in (METADATA, vpc.router):
        listener = socket.create_server((address, HTTP), backlog=512)
        _in_background(_accept, listener, lambda caller, peer, at=address: _relay(directory, caller, peer, at))
    _in_background(serve_names, vpc.resolver, vpc.names)
    entrance = socket.socket(socket.AF_UNIX)
    place = directory / SOCKET
    place.unlink(missing_ok=True)
    entrance.bind(str(place))
    entrance.listen(512)
    _in_background(_accept, entrance, lambda caller, _: _serve(vpc, caller))
    print("ready", flush=True)  # noqa: T201 - whoever started it waits for this
    sys.stdin.buffer.read()
    return 0


def _lay_network(vpc: Vpc) -> None:
    prefix = vpc.network.prefixlen
    _ip(
        "link set lo up",
        f"link add br0 address {_BRIDGE} type bridge",
        f"address add {vpc.router}/{prefix} dev br0",
        f"address add {vpc.resolver}/{prefix} dev br0",
        f"address add {METADATA}/32 dev br0",
        "link set br0 up",
    )


def _ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines).encode(), check=True, capture_output=True)


def _in_background(act: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=act, args=arguments, daemon=True).start()


def _accept(listener: socket.socket, answer: Callable[[socket.socket, Any], None]) -> None:
    while True:
        caller, peer = listener.accept()
        _in_background(answer, caller, peer)


def _serve(vpc: Vpc, caller: socket.socket) -> None:
    """Answers one request, whatever it asks for."""
    with caller:
        line, descriptors, _, _ = socket.recv_fds(caller, _LINE, 3)
        while line and not line.endswith(b"\n"):
            more = caller.recv(_LINE)
            line = line + more if more else b""
        request = json.loads(line or b"{}")
        try:
            match request.get("do"):
                case "connect":
                    _connect(caller, request)
                    return
                case "events":
                    _follow(vpc, caller)
                    return
                case "run":
                    answer = _run(vpc, request, descriptors, caller)
                case _:
                    answer = _act(vpc, request)
        except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            answer = {"problem": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(OSError):  # whoever asked may have left
            caller.sendall(json.dumps(answer).encode() + b"\n")


def _act(vpc: Vpc, request: Request) -> Mapping[str, Any]:
    match request["do"]:
        case "start":
            return _start(vpc, request)
        case "list":
            with vpc.lock:
                return {name: machine.address for name, machine in vpc.machines.items()}
        case "end":
            os.kill(_machine(vpc, request).pid, signal.SIGKILL)
        case "ask-to-end":
            os.kill(_machine(vpc, request).pid, signal.SIGTERM)
        case "link":
            _ip(f"link set {_machine(vpc, request).link} {'up' if request['up'] else 'down'}")
        case "freeze":
            _signal_all(_machine(vpc, request).pid, signal.SIGSTOP)
        case "thaw":
            _signal_all(_machine(vpc, request).pid, signal.SIGCONT)
        case "plug":
            _plug(vpc, request)
        case "unplug":
            _unplug(vpc, request)
        case "names":
            vpc.names.update(request["names"])  # first: a name that stays is known all the time
            for name in vpc.names.keys() - request["names"].keys():
                del vpc.names[name]
        case unknown:
            raise ValueError(f"the keeper knows no {unknown!r}")
    return {}


def _plug(vpc: Vpc, request: Request) -> None:
    """Lets a directory appear below /box/volumes of a machine that runs, as a disk does that is attached.

    The mount is made here and travels: what machines have there is a slave of this place. Its name is a link to it that
    comes last: who waits for the name, and writes there, never writes into the place that the mount is about to hide.
    What is plugged in already is left.
    """
    link = _plugs(vpc, request["name"]) / request["label"]
    place = _behind(link)
    with vpc.lock:
        if link not in vpc.plugged:
            place.mkdir(exist_ok=True)
            subprocess.run(["mount", "--bind", request["source"], str(place)], check=True, capture_output=True)
            vpc.plugged.add(link)
            link.symlink_to(place.name)


def _unplug(vpc: Vpc, request: Request) -> None:
    link = _plugs(vpc, request["name"]) / request["label"]
    place = _behind(link)
    with vpc.lock:
        if link in vpc.plugged:
            link.unlink()
            subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)
            vpc.plugged.discard(link)
            place.rmdir()


def _behind(link: Path) -> Path:
    """Where the mount is that a name of a volume leads to; `ls` does not show it."""
    return link.with_name(f".{link.name}")


def _plugs(vpc: Vpc, name: str) -> Path:
    place = vpc.directory / "plugs" / name
    place.mkdir(parents=True, exist_ok=True)
    return place


def _machine(vpc: Vpc, request: Request) -> Machine:
    with vpc.lock:
        found = vpc.machines.get(request["name"])
    if found is None:
        raise ValueError(f"no machine {request['name']!r} runs")
    return found


def _start(vpc: Vpc, request: Request) -> Mapping[str, Any]:
    """A machine that has its own network, names, processes, mounts, and a boot time that is now.

    slurmctld takes a node for booted only if its boot time lies behind the request, so machines need a clock of their
    own. `unshare` takes whole seconds: a machine seems up to 1 s older than it is.
    """
    with vpc.lock:
        if request["name"] in vpc.machines:
            raise ValueError(f"machine {request['name']!r} runs already")
        vpc.links += 1
        link = f"v{vpc.links}"
    address = f"{request['address']}/{vpc.network.prefixlen}"
    spaces = ["--net", "--uts", "--ipc", "--mount", "--propagation=slave", "--pid", "--time", "--fork", "--kill-child"]
    plugs = f"{_plugs(vpc, request['name'])}=/box/volumes"
    age = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    names = (request["directory"], request["host_name"], address, vpc.router, vpc.resolver, request["system"])
    script = ["/bin/sh", str(_SCRIPT), *names]
    with (Path(request["directory"]) / "console").open("ab") as console:
        process = subprocess.Popen(
            ["unshare", *spaces, f"--boottime=-{age}", *script, *request["mounts"], plugs, "--", *request["init"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=console,
            start_new_session=True,
        )
    try:
        machine = _wire(vpc, process, link, request["address"])
    except BaseException:
        process.kill()  # half a machine is none
        raise
    with vpc.lock:
        vpc.machines[request["name"]] = machine
    _in_background(_await_end, vpc, request["name"], machine)
    return {}


def _wire(vpc: Vpc, process: subprocess.Popen[bytes], link: str, address: str) -> Machine:
    """The machine, with its network card in place. It says when its namespaces are sure to exist."""
    assert process.stdin is not None and process.stdout is not None
    if process.stdout.readline() != b"here\n":
        raise ValueError(f"its first process ended with {process.wait(_START_TIMEOUT_S)}, see its console")
    pid = _child(process.pid)
    _ip(f"link add {link} type veth peer name eth0 netns {process.pid}", f"link set {link} master br0 up")
    process.stdin.write(b"go\n")
    process.stdin.close()
    with process.stdout:
        if process.stdout.readline() != b"up\n":
            raise ValueError(f"its network does not start: it ended with {process.wait(_START_TIMEOUT_S)}")
    return Machine(process=process, pid=pid, link=link, address=address)


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])


def _await_end(vpc: Vpc, name: str, machine: Machine) -> None:
    code = machine.process.wait()
    with vpc.lock:
        del vpc.machines[name]
        listeners = list(vpc.listeners)
    line = json.dumps({"ended": name, "code": code}).encode() + b"\n"
    for listener in listeners:
        with contextlib.suppress(OSError):
            listener.sendall(line)


def _follow(vpc: Vpc, caller: socket.socket) -> None:
    """Tells this caller of each machine that ends, until it leaves."""
    with vpc.lock:
        vpc.listeners.append(caller)
    caller.sendall(b"{}\n")
    with contextlib.suppress(OSError):
        while caller.recv(_LINE):
            pass
    with vpc.lock:
        vpc.listeners.remove(caller)


def _signal_all(pid: int, number: signal.Signals) -> None:
    """To every process of a machine: those that are in its process namespace, also the ones that begin meanwhile."""
    space = (Path("/proc") / str(pid) / "ns/pid").readlink()
    told: set[str] = set()
    while new := [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name not in told]:
        told.update(new)
        for name in new:
            with contextlib.suppress(OSError):  # processes come and go
                if Path("/proc", name, "ns/pid").readlink() == space:
                    os.kill(int(name), number)


def _run(vpc: Vpc, request: Request, descriptors: list[int], caller: socket.socket) -> Mapping[str, Any]:
    """The exit code of a command in a machine, with the caller's own standard input, output and error.

    A command whose caller leaves is told so, as at the end of any terminal.
    """
    try:
        pid = _machine(vpc, request).pid
        spaces = ["--mount", "--net", "--uts", "--ipc", "--pid", "--time"]
        user = [] if _same_user(pid) else ["--user", "--preserve-credentials"]
        inside, out, problems = descriptors
        process = subprocess.Popen(
            ["nsenter", f"--target={pid}", *user, *spaces, "--root", "--wd", "--", *request["command"]],
            stdin=inside,
            stdout=out,
            stderr=problems,
            env=request["environment"],
            start_new_session=True,
        )
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    ended = os.pidfd_open(process.pid)
    if ended not in select.select([caller.fileno(), ended], [], [])[0]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGHUP)
    os.close(ended)
    return {"code": process.wait()}


def _same_user(pid: int) -> bool:
    return Path(f"/proc/{pid}/ns/user").readlink() == Path("/proc/self/ns/user").readlink()


def _connect(caller: socket.socket, request: Request) -> None:
    """From outside to a port of a machine: after a line `{}` the bytes go both ways."""
    machine = socket.create_connection((request["address"], request["port"]), timeout=5)
    machine.settimeout(None)
    caller.sendall(b"{}\n")
    _splice(caller, machine)


def _relay(directory: Path, caller: socket.socket, peer: tuple[str, int], at: str) -> None:
    """From a machine to the daemon outside, which is told in a first line who calls, and which address he called."""
    outside = socket.socket(socket.AF_UNIX)
    try:
        outside.connect(str(directory / OUTSIDE))
        # The PROXY protocol, version 1. Source: HAProxy's proxy-protocol.txt, section 2.1.
        outside.sendall(f"PROXY TCP4 {peer[0]} {at} {peer[1]} {HTTP}\r\n".encode())
    except OSError:
        caller.close()
        outside.close()
        return
    _splice(caller, outside)


def _splice(one: socket.socket, other: socket.socket) -> None:
    back = threading.Thread(target=_pump, args=(other, one), daemon=True)
    back.start()
    _pump(one, other)
    back.join()
    one.close()
    other.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_LINE):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main())
