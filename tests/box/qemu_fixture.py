"""A program with QEMU's monitor and no machine: `qemu_fixture.py DIRECTORY LINK MONITOR [OPTION...]`.

It opens the tap and those of options `ifname=LINK`, and writes its arguments and the monitor's commands to files in the
directory. Files there change it: `end` holds the last line of a QEMU that ends at once, `busy` how many times it
refuses to close a disk.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any

DIRECTORY, MONITOR = Path(sys.argv[1]), sys.argv[3]
LOCK = threading.Lock()
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # Source: linux/if_tun.h


def refusal(command: dict[str, Any]) -> str | None:
    """Why QEMU refuses a command."""
    busy = DIRECTORY / "busy"
    if command["execute"] != "blockdev-del" or not busy.exists() or busy.read_text() == "0":
        return None
    busy.write_text(str(int(busy.read_text()) - 1))
    return f"Node {command['arguments']['node-name']} is in use"


def serve(caller: socket.socket) -> None:
    """Answer the commands of a connection."""
    with caller:
        caller.sendall(b'{"QMP": {}}\r\n')
        while True:
            line, descriptors, _, _ = socket.recv_fds(caller, 65536, 1)
            if not line:
                return
            command = json.loads(line)
            for descriptor in descriptors:
                command["file"] = str(Path(f"/proc/self/fd/{descriptor}").readlink())
                os.close(descriptor)
            with LOCK:
                problem = refusal(command)
                with (DIRECTORY / "commands").open("a") as log:
                    log.write(json.dumps(command) + "\n")
            answer = {"error": {"class": "GenericError", "desc": problem}} if problem else {"return": {}}
            caller.sendall(json.dumps(answer).encode() + b"\r\n")


def main() -> int:
    """Serve the monitor until a signal ends this process."""
    (DIRECTORY / "arguments").write_text(json.dumps(sys.argv[2:]))
    if (DIRECTORY / "end").exists():
        sys.stderr.write((DIRECTORY / "end").read_text())
        return 1
    links = [sys.argv[2], *(word.partition("=")[2] for word in sys.argv[4:] if word.startswith("ifname="))]
    for link in links:
        tap = os.open("/dev/net/tun", os.O_RDWR)  # its port of the bridge has a carrier while it is open
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", link.encode(), IFF_TAP | IFF_NO_PI))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(MONITOR)
        listener.listen()
        while True:
            caller, _ = listener.accept()
            threading.Thread(target=serve, args=(caller,), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
