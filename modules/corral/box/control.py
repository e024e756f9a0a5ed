"""Starting, stopping and asking the box of a state directory, from any process; all that a command needs.

Beside the catalogue only the standard library is imported here: the cloud lives in the daemon. Every failure is a
`BoxError`, one sentence that can be shown as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from corral.box import lock, provider
from corral.box.directory import StateDirectory
from corral.box.process import (
    FULL,
    NEEDED,
    READY_TIMEOUT_S,
    BoxError,
    ask,
    end,
    free_bytes,
    require_room,
    room,
    spawn,
    unusable,
)
from corral.box.room import require_room_for_machines, shortage
from corral.box.system import THIS_SYSTEM, chosen_system, image_profile, system_of
from corral.catalog.images import BOX_PROFILE, IMAGE_VARIABLE

__all__ = ["BoxError", "BoxStatus", "environment", "inventory", "reset", "start", "status", "stop"]

ACCOUNT = "123456789012"
ACCESS_KEY = "AKIACORRALBOX0000000"
REGION = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxStatus:
    """What is known of the box of a directory; `problem` is a sentence when it runs but cannot keep its state.

    `machines`: why its instances are not machines, a sentence; None where they are. `faults`: those in force, a line
    each.
    """

    state: Literal["running", "stopped", "crashed"]
    dir: Path
    url: str | None = None
    pid: int | None = None
    port: int | None = None
    started: datetime | None = None
    problem: str | None = None
    machines: str | None = None
    faults: tuple[str, ...] = ()


def start(dir: Path, *, machines: bool = False, system: Path | None = None) -> BoxStatus:
    """The running box of the directory: the one that was there, or a new one that continues from the saved state.

    `machines`: whether the instances of a new one are machines, if this machine can hold any. `system`: the root
    directory of the system that they are, else that of CORRAL_BOX_SYSTEM, else the one that they were before.
    """
    if sys.platform != "linux":
        raise BoxError(f"the box needs Linux, this is {sys.platform} - use WSL or a Linux machine for it")
    home = StateDirectory(dir.absolute())
    _prepare(home)
    now = status(dir)
    if now.state == "running":
        return now
    require_room(home)
    _settle_system(home, system or chosen_system(os.environ))
    answer = spawn(home, machines=machines)
    if answer == "ready":
        return status(dir)
    if answer == "busy":
        return _await_other(dir)
    raise BoxError(answer)


def require_room_to_boot(dir: Path) -> None:
    """Raises BoxError where the disk has no room for machines, if instances are any in this box."""
    if status(dir).machines is None:
        require_room_for_machines(StateDirectory(dir.absolute()))


def stop(dir: Path) -> bool:
    """True if a box was running there; afterwards none is. Raises BoxError too where it ended without a last save."""
    home = StateDirectory(dir.absolute())
    pid = _holder(home)
    if not pid:
        _remove(home.record)
        return False
    saved = _identity(home.cloud)
    end(pid)
    _remove(home.record)
    if _identity(home.cloud) == saved and home.path.is_dir():
        reason = room(home) if free_bytes(home) < NEEDED else f"see {home.log}"
        raise BoxError(
            f"the box in {home.path} has stopped, but could not save its state: what changed since the last save is"
            f" lost ({reason})"
        )
    return True


def has_state(dir: Path) -> bool:
    """True if something may be up in the box of the directory: it runs, or a cloud or a stack's state was saved."""
    home = StateDirectory(dir.absolute())
    try:
        return bool(_holder(home)) or os.path.lexists(home.cloud) or any(home.stack_states.rglob("*.json"))
    except OSError as error:
        raise unusable(home, error) from None


def status(dir: Path) -> BoxStatus:
    """Whether the box of the directory runs, and where; `crashed` if it ended without being asked to."""
    home = StateDirectory(dir.absolute())
    record = _record(home)
    if record is None:
        return BoxStatus(state="stopped", dir=home.path)
    facts: dict[str, Any] = {
        "dir": home.path,
        "url": record["url"],
        "pid": record["pid"],
        "port": record["port"],
        "started": datetime.fromisoformat(record["started"]),
        "machines": record.get("machines"),
    }
    if _holder(home) != record["pid"]:
        return BoxStatus(state="crashed", **facts)
    problem, faults = _health(home, record["port"])
    if problem is None and record.get("machines") is None:
        problem = shortage(home)
    return BoxStatus(state="running", problem=problem, faults=faults, **facts)


def reset(dir: Path) -> None:
    """Empties the cloud, and forgets the Pulumi states and stack copies that described it."""
    home = StateDirectory(dir.absolute())
    now = status(dir)
    if now.state == "running" and now.port:
        ask(now.port, "POST", "/_box/reset")
    else:
        _remove(home.cloud)
        _remove(home.objects)
    for kept in (home.pulumi, home.pulumi_home, home.stacks):
        _remove(kept)
    if now.state == "running":
        _prepare(home)


def inventory(dir: Path) -> dict[str, list[str]]:
    """All that the cloud holds beyond what a new account has: sorted ids by service and kind."""
    answer = ask(_port(dir), "GET", "/_box/inventory")
    return {kind: list(ids) for kind, ids in answer.items()}


def machines(dir: Path) -> Mapping[str, Path]:
    """Where the running machines are reached, by the ids of their instances."""
    answer = ask(_port(dir), "GET", "/_box/machines")
    return {instance_id: Path(place) for instance_id, place in answer.items()}


def give_spot_notice(dir: Path, which: str, after: str) -> list[str]:
    """The ids of the spot machines that are taken back after this time. Raises BoxError where none is meant."""
    return list(make_fault(dir, "spot-notice", of=which, after=after)["instances"])


def make_fault(dir: Path, kind: str, **words: str) -> Mapping[str, Any]:
    """What came of a fault: the ids of the `instances` that it was done to, or the `line` of one now in force.

    `words`: type, zone, market, of (a queue, a node, an instance id), left (how often), for and after (times such as
    30s or 2m), room, reason, call, code, message, as the kind has them. Raises BoxError where they mean nothing.
    """
    return ask(_port(dir), "POST", f"/_box/fault/{kind}?{urlencode(words)}")


def clear_faults(dir: Path, kind: str = "all") -> int:
    """How many faults of this kind are in force no more. Raises BoxError where there was none of it."""
    return int(ask(_port(dir), "POST", f"/_box/faults/clear?{urlencode({'kind': kind})}")["cleared"])


def faults(dir: Path) -> list[Mapping[str, Any]]:
    """The faults in force: docs/cli.md has their shape, and each has a `line` for people."""
    return list(ask(_port(dir), "GET", "/_box/faults")["faults"])


def quotas(dir: Path, region: str = REGION, code: str | None = None) -> Mapping[str, Any]:
    """The account's `quotas` in a `region`, all or the one of this code. Raises BoxError where there is none."""
    asked = {"region": region} if code is None else {"region": region, "code": code}
    return ask(_port(dir), "GET", f"/_box/quotas?{urlencode(asked)}")


def set_quota(dir: Path, code: str, value: float | str, region: str = REGION) -> Mapping[str, Any]:
    """The quota of this code after it was set. Raises BoxError where there is none, or that is no value of one."""
    asked = urlencode({"code": code, "value": value, "region": region})
    return ask(_port(dir), "POST", f"/_box/quota?{asked}")


def environment(dir: Path) -> Mapping[str, str]:
    """The variables that point pulumi, aws and boto3 at the running box of the directory."""
    port = _port(dir)
    home = StateDirectory(dir.absolute())
    system = system_of(home)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": "corral-box",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PULUMI_BACKEND_URL": f"file://{home.pulumi}",
        "PULUMI_HOME": str(home.pulumi_home),
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "CORRAL_BOX_DIR": str(home.path),
        "CORRAL_STACKS": str(home.stacks),
        "CORRAL_PYTHON": sys.executable,
        "PATH": path,
        **({} if system == THIS_SYSTEM else {IMAGE_VARIABLE: image_profile(system)}),
    }


def _prepare(home: StateDirectory) -> None:
    try:
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.pulumi.mkdir(mode=0o700, exist_ok=True)
        provider.install(home.pulumi_home)
    except OSError as error:
        raise unusable(home, error) from None


def _settle_system(home: StateDirectory, wanted: Path | None) -> None:
    """Notes which system the machines are. What there is already is made of the one before, and needs its programs."""
    if wanted is None or wanted.absolute() == system_of(home):
        return
    if has_state(home.path):
        raise BoxError(
            f"the box in {home.path} holds what began with the system in {system_of(home)}, not in {wanted} - choose"
            " another directory with --dir"
        )
    profile = image_profile(wanted)
    _remove(home.system)
    if profile != BOX_PROFILE:
        home.system.symlink_to(wanted.absolute())


def _await_other(dir: Path) -> BoxStatus:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        now = status(dir)
        if now.state == "running":
            return now
        time.sleep(0.05)  # somebody else's start: there is nothing of ours to wait on
    raise BoxError(f"another box is starting in {dir} and does not become ready - stop it with `corral box stop`")


def _holder(home: StateDirectory) -> int | None:
    try:
        return lock.holder(home.lock)
    except OSError as error:
        raise unusable(home, error) from None


def _record(home: StateDirectory) -> dict[str, Any] | None:
    """What the daemon wrote of itself; None where that is missing or damaged: the next start writes it anew."""
    try:
        record = dict(json.loads(home.record.read_text()))
        datetime.fromisoformat(record["started"])
        return record if {"pid", "port", "url"} <= record.keys() else None
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        return None
    except OSError as error:
        raise unusable(home, error) from None


def _port(dir: Path) -> int:
    now = status(dir)
    if now.state == "running" and now.port:
        return now.port
    if now.state == "crashed":
        raise BoxError(f"the box in {now.dir} died (process {now.pid}) - `corral box start` continues from its state")
    raise BoxError(f"no box runs in {now.dir} - start it with `corral box start`")


def _health(home: StateDirectory, port: int) -> tuple[str | None, tuple[str, ...]]:
    """What is wrong with the box, a sentence, and the faults in force."""
    try:
        answer = ask(port, "GET", "/_box/health")
    except BoxError as error:
        return str(error), ()
    problem, faults = answer.get("problem"), tuple(answer.get("faults", ()))
    if problem and any(os.strerror(number) in problem for number in FULL):
        return f"{problem}: {room(home)} - free some: what is made now is lost when the box ends", faults
    return None if problem is None else str(problem), faults


def _identity(path: Path) -> tuple[int, int] | None:
    """What changes with every save, as each one puts a new file in the place of the old."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _remove(path: Path) -> None:
    """Removes a file, or a directory with all that is in it."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        return  # somebody else removes it as well
    except OSError as error:
        raise BoxError(f"{error.filename or path} cannot be removed: {error.strerror}") from None
