"""The process that is the box: `python -m corral.box.daemon --dir DIR`, started by `control.start`.

It takes the directory's lock, loads the cloud, serves on a free port of the loopback address until SIGTERM, saves, and
leaves. Whoever started it learns through the pipe `--ready` that it serves, or in one sentence why not.
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

from corral.box import lock
from corral.box.directory import StateDirectory

LOOPBACK = "127.0.0.1"
BACKLOG = 128  # connections that wait; the engine opens dozens at once
OWNER_CHECK_S = 2  # how soon a box leaves after its state directory was removed


def main() -> int:
    """Never returns after serving: 0 is the exit code of a clean stop, 1 that of a box that could not start."""
    parser = argparse.ArgumentParser(prog="corral.box.daemon")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--ready", type=int, default=2)
    parser.add_argument("--machines", action="store_true")
    options = parser.parse_args()
    home = StateDirectory(options.dir.absolute())
    warnings.filterwarnings("ignore", module=r"moto\.core\.serialize")  # AWS error codes that no model lists
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        held = lock.take(home.lock)
    except (BlockingIOError, PermissionError):
        return _say(options.ready, "busy", 1)
    try:
        code = _serve(home, held, options.ready, with_machines=options.machines)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _say(options.ready, f"the box in {home.path} cannot start: {place}{error.strerror or error}", 1)
    logging.shutdown()
    os.close(held)
    os._exit(code)  # tearing moto's modules down one by one would take most of a second


def _serve(home: StateDirectory, held: int, ready: int, *, with_machines: bool) -> int:
    from werkzeug.serving import make_server

    from corral.box import state
    from corral.box.calls import CallLog
    from corral.box.cloud import Cloud
    from corral.box.ec2_machines import settle
    from corral.box.front import Front
    from corral.box.http import Handler
    from corral.box.machines import Machines
    from corral.box.room import Watch
    from corral.box.services import install
    from corral.box.system import system_of
    from corral.box.vpc.probe import Ground, probe

    install()
    cloud = Cloud(home)
    try:
        cloud.open()
    except state.Unreadable as error:
        return _say(ready, str(error), 1)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    facts: dict[str, Any] = {"pid": os.getpid(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
    facts |= {"versions": state.versions()}
    front = Front(cloud, CallLog(home.calls), facts, ended.set)
    listener = _listen(home)
    server = make_server(LOOPBACK, 0, front, threaded=True, request_handler=Handler, fd=listener.fileno())
    facts |= {"port": server.port, "url": f"http://127.0.0.1:{server.port}"}
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    ground = probe() if with_machines else Ground(users=None, problem="the box was started without machines")
    facts |= {"machines": ground.problem or None}
    machines = Machines(cloud, front, ground, home.machines, system_of(home))
    if ground.users:
        machines.open()
        front.places = machines.places
    else:
        with cloud.lock:
            settle()
    front.faults.open()
    state.write(json.dumps(facts).encode(), home.record)
    logging.info("the box in %s serves at %s", home.path, facts["url"])
    _say(ready, "ready", 0)
    watch = Watch(home)
    while not ended.wait(OWNER_CHECK_S) and _is_ours(home, held):
        if ground.users:
            watch.look()
    if ground.users:
        machines.close()
    cloud.lock.acquire()  # for good: no call may change anything after the last save
    cloud.save()
    home.record.unlink(missing_ok=True)
    logging.info("the box in %s stopped", home.path)
    return 0


def _listen(home: StateDirectory) -> socket.socket:
    """A listening socket on the port of the last daemon of this directory, or on any where that one is taken."""
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
    """False once the state directory was removed: then nobody can stop this box any more."""
    try:
        return os.path.samestat(home.lock.stat(), os.fstat(held))
    except OSError:
        return False


def _say(ready: int, sentence: str, code: int) -> int:
    try:
        os.write(ready, sentence.encode() + b"\n")
        if ready > 2:
            os.close(ready)
    except OSError:
        logging.info("nobody waits for: %s", sentence)
    return code


if __name__ == "__main__":
    sys.exit(main())
