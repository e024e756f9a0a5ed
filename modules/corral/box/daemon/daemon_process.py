"""Start the daemon's process, terminate it, and send it control requests."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

from corral.box.secret import HEADER, BoxSecret
from corral.box.state.directory import StateDirectory, open_log
from corral.box.switches import Switches

READY_TIMEOUT_S = 60  # a loaded machine needs a few seconds
REQUIRED_BYTES = 4 << 20  # a whole environment takes less than 1 MiB, twice during a save; the logs grow
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
INVALID_REQUEST = 409  # HTTP status of an invalid control request
STOP_TIMEOUT_S = 10  # saving the largest cloud takes well under a second


class BoxError(Exception):
    """A failure of the box; the text is one sentence for the user."""


class InvalidRequest(BoxError):
    """A request that is invalid in this box; the text is one sentence for the user."""

    code = 2  # exit code of the command: wrong input


def spawn(home: StateDirectory, switches: Switches) -> str:
    """Start the daemon. Returns `ready`, `busy` or the reason why it cannot start, as it writes it to a pipe."""
    read_end, write_end = os.pipe()
    # -P: not from modules in the working directory, which may be somebody else's.
    command = [sys.executable, "-P", "-m", "corral.box", "--dir", str(home.path), "--ready", str(write_end)]
    command += [word for name, value in switches.document().items() for word in (f"--{name}", value)]
    try:
        with os.fdopen(open_log(home.log), "ab") as log:
            daemon = start_process(command, log.fileno(), write_end)
    except OSError as error:
        raise unusable_directory(home, error) from None
    finally:
        os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        if not select.select([pipe], [], [], READY_TIMEOUT_S)[0]:
            daemon.kill()
            return f"the box in {home.path} was not ready after {READY_TIMEOUT_S} s - see {home.log}"
        answer = pipe.readline().decode().strip()
    if answer != "ready":
        daemon.wait()
    else:
        daemon.returncode = 0  # detached: no ResourceWarning, no wait at exit
    return answer or f"the box in {home.path} ended before it was ready - see {home.log}"


def start_process(command: Sequence[str], log: int, ready: int) -> subprocess.Popen[bytes]:
    """The daemon's process, in a session of its own, so that Ctrl-C does not reach it."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(ready,),
        start_new_session=True,
        env=clean_environment(),
    )


def terminate(pid: int) -> None:
    """Terminate a daemon: SIGTERM lets it save; SIGKILL follows after STOP_TIMEOUT_S."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not select.select([process], [], [], STOP_TIMEOUT_S)[0]:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            select.select([process], [], [], STOP_TIMEOUT_S)
    except ProcessLookupError:
        return
    except PermissionError:
        raise BoxError(f"the box with process id {pid} belongs to another user - only that user can stop it") from None
    finally:
        os.close(process)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # reap it if it is our child


@dataclass(frozen=True, slots=True)
class BoxAddress:
    """Where a running daemon answers control requests, and the secret that they need."""

    port: int
    secret: BoxSecret


def send_request(address: BoxAddress, method: str, path: str) -> dict[str, Any]:
    """The daemon's answer to a control request. Raises BoxError, or InvalidRequest for wrong input."""
    connection = HTTPConnection("127.0.0.1", address.port, timeout=30)
    try:
        connection.request(method, path, headers={HEADER: address.secret.value})
        answer = connection.getresponse()
        body = json.loads(answer.read())
    except (OSError, HTTPException, ValueError) as error:
        raise BoxError(f"the box at 127.0.0.1:{address.port} does not answer {path}: {error}") from None
    finally:
        connection.close()
    if answer.status == INVALID_REQUEST:
        raise InvalidRequest(str(body.get("problem")))
    if answer.status != 200:
        raise BoxError(f"the box at 127.0.0.1:{address.port} refused {path}: {body.get('problem', answer.reason)}")
    return dict(body)


def unusable_directory(home: StateDirectory, error: Exception) -> BoxError:
    """The error for a state directory that cannot be read or written."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        reason = f"{reason}: {describe_free_space(home)}"
    return BoxError(f"{home.path} cannot be used as a box's state directory: {reason} - choose another with --dir")


def require_disk_space(home: StateDirectory) -> None:
    """Raises BoxError if the disk is too full for a box to save its state."""
    if free_bytes(home) < REQUIRED_BYTES:
        raise BoxError(
            f"the box in {home.path} was not started: {describe_free_space(home)} - free some, or choose another with"
            " --dir"
        )


def describe_free_space(home: StateDirectory) -> str:
    """The free and the required disk space, as part of a sentence."""
    return f"the disk of that directory has {free_bytes(home) >> 10:,} KiB free, a box needs {REQUIRED_BYTES >> 20} MiB"


def free_bytes(home: StateDirectory) -> int:
    """The bytes that the user may still write on the directory's disk."""
    disk = os.statvfs(next(path for path in (home.path, *home.path.parents) if path.exists()))
    return disk.f_bavail * disk.f_frsize


def clean_environment() -> dict[str, str]:
    """The daemon's environment, without AWS profiles and endpoints, which would break moto's use of boto3."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MOTO_"))}
    no_cors = {"MOTO_DISABLE_GLOBAL_CORS": "1"}  # no web page may read the box's answers
    return {**inherited, **no_cors, "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
