"""The box's process: `python -m corral.box --dir DIR`, started by `client.start`.

It locks the directory, loads the cloud, serves on a loopback port until SIGTERM, saves, and exits. It writes `ready` to
the pipe `--ready`, or one sentence with the reason why it cannot start.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from corral.box.state import lock
from corral.box.state.directory import StateDirectory
from corral.box.switches import NEW_BOX, Machines, Switches, parse_switches

LOOPBACK = "127.0.0.1"
BACKLOG = 128  # pending connections; the engine opens dozens at once
OWNER_CHECK_S = 2  # how often the box checks that its state directory still exists


def main() -> int:
    """Run the daemon. Exit code 0 is a clean stop, 1 a failed start."""
    parser = argparse.ArgumentParser(prog="corral.box")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--ready", type=int, default=2)
    for name in NEW_BOX.document():
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    home = StateDirectory(options.dir.absolute())
    warnings.filterwarnings("ignore", module=r"moto\.core\.serialize")  # AWS error codes that no model lists
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        held = lock.acquire(home.lock)
    except (BlockingIOError, PermissionError):
        return _report(options.ready, "busy", 1)
    try:
        code = _serve(home, held, options.ready, parse_switches(vars(options), NEW_BOX))
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        return _report(options.ready, f"the box in {home.path} cannot start: {path}{error.strerror or error}", 1)
    logging.shutdown()
    os.close(held)
    os._exit(code)  # skips the teardown of moto's modules, which takes most of a second


def _serve(home: StateDirectory, held: int, ready: int, switches: Switches) -> int:
    from corral.box.daemon.shared_loader import share_loader

    share_loader()  # before moto, which reads the regions of EC2 when it is imported

    from werkzeug.serving import make_server

    from corral.box import delays
    from corral.box.access import principals
    from corral.box.api import ssm
    from corral.box.api_calls import CallLog
    from corral.box.daemon.disk_space import DiskSpaceMonitor
    from corral.box.daemon.http import RequestHandler
    from corral.box.daemon.moto_overrides import install
    from corral.box.daemon.wsgi_app import WsgiApp
    from corral.box.ec2.instance_state import finish_transitions
    from corral.box.machines.machine_disks import MachineDisks
    from corral.box.machines.machine_host import MachineHost
    from corral.box.machines.machine_supervisor import MachineSupervisor
    from corral.box.machines.namespace_host import NamespaceHost
    from corral.box.machines.rootfs import system_of
    from corral.box.secret import create_secret
    from corral.box.state import saved_state
    from corral.box.state.backend import CloudState
    from corral.box.vm.preparation import read_support
    from corral.box.vm.virtual_host import VirtualHost
    from corral.box.vpc.capabilities import HostSupport, probe_host

    install()
    cloud = CloudState(home)
    try:
        cloud.open()
    except saved_state.UnreadableState as error:
        return _report(ready, str(error), 1)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    facts: dict[str, Any] = {"pid": os.getpid(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
    facts |= {"versions": saved_state.versions()}
    saved_state.write_atomically(json.dumps(switches.document()).encode(), home.switches)
    delays.switches = switches
    secret = create_secret(home)
    principals.secret = secret
    app = WsgiApp(cloud, CallLog(home.calls), secret, ended.set)
    app.facts = facts
    listener = _listen(home)
    server = make_server(LOOPBACK, 0, app, threaded=True, request_handler=RequestHandler, fd=listener.fileno())
    facts |= {"port": server.port, "url": f"http://127.0.0.1:{server.port}"}
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    without = HostSupport(users=None, problem="the box was started with --machines none")
    support = without if switches.machines is Machines.NONE else probe_host()
    facts |= {"no_machines_reason": support.problem or None}
    disks = MachineDisks(home.machines, support.as_machine_root)
    host: MachineHost = NamespaceHost(disks, support, system_of(home))
    if switches.machines is Machines.VM:
        host = VirtualHost(disks, read_support(home.virtual_support))
    machines = MachineSupervisor(cloud, app, secret, support, disks, host)
    if support.users:
        machines.open()
        app.machine_directories = ssm.machine_directories = machines.machine_directories
    else:
        with cloud.lock:
            finish_transitions()
    app.faults.open()
    saved_state.write_atomically(json.dumps(facts).encode(), home.record)
    logging.info("the box in %s serves at %s", home.path, facts["url"])
    _report(ready, "ready", 0)
    monitor = DiskSpaceMonitor(home)
    while not ended.wait(OWNER_CHECK_S) and _is_ours(home, held):
        if support.users:
            monitor.check()
    if support.users:
        machines.close()
    cloud.lock.acquire()  # never released: no call may change anything after the last save
    cloud.save()
    home.record.unlink(missing_ok=True)
    logging.info("the box in %s stopped", home.path)
    return 0


def _listen(home: StateDirectory) -> socket.socket:
    """A listening socket on the port of this directory's last daemon, or on a free port if it is taken."""
    try:
        last = int(home.port.read_text())
    except (OSError, ValueError):
        last = 0
    try:
        listener = socket.create_server((LOOPBACK, last), backlog=BACKLOG)
    except OSError:
        listener = socket.create_server((LOOPBACK, 0), backlog=BACKLOG)
    home.port.write_text(str(listener.getsockname()[1]))
    return listener


def _is_ours(home: StateDirectory, held: int) -> bool:
    """False if the state directory was removed: then no command can stop this box."""
    try:
        return os.path.samestat(home.lock.stat(), os.fstat(held))
    except OSError:
        return False


def _report(ready: int, sentence: str, code: int) -> int:
    try:
        os.write(ready, sentence.encode() + b"\n")
        if ready > 2:
            os.close(ready)
    except OSError:
        logging.info("the starting process is gone; not reported: %s", sentence)
    return code


if __name__ == "__main__":
    sys.exit(main())
