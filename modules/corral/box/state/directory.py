"""The layout of a box's state directory, and how its logs are opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The paths of a box's files."""

    path: Path

    @property
    def record(self) -> Path:
        """box.json: the daemon's pid, port and URL; it exists while a daemon is ready."""
        return self.path / "box.json"

    @property
    def switches(self) -> Path:
        """The switches of the last start."""
        return self.path / "switches.json"

    @property
    def secret(self) -> Path:
        """The secret that control requests and access keys derive from."""
        return self.path / "secret"

    @property
    def lock(self) -> Path:
        """The file that a running daemon holds a lock on."""
        return self.path / "lock"

    @property
    def cloud(self) -> Path:
        """The saved state of the cloud."""
        return self.path / "cloud.pickle"

    @property
    def objects(self) -> Path:
        """The contents of large S3 objects, which the saved state refers to."""
        return self.path / "objects"

    @property
    def machines(self) -> Path:
        """The machines' disks, by instance, and what machines share."""
        return self.path / "machines"

    @property
    def system(self) -> Path:
        """A link to the root directory of the machines' system; missing if it is the host's."""
        return self.path / "system"

    @property
    def virtual_support(self) -> Path:
        """What virtual machines run with on this host; missing without them."""
        return self.path / "virtual-support.json"

    @property
    def log(self) -> Path:
        """The daemon's log."""
        return self.path / "box.log"

    @property
    def calls(self) -> Path:
        """One line of JSON for each API call."""
        return self.path / "calls.jsonl"

    @property
    def stacks(self) -> Path:
        """The box's own copy of the two Pulumi projects."""
        return self.path / "stacks"

    @property
    def pulumi(self) -> Path:
        """Pulumi's state backend."""
        return self.path / "pulumi"

    @property
    def stack_states(self) -> Path:
        """The stacks' states in that backend."""
        return self.pulumi / ".pulumi" / "stacks"

    @property
    def pulumi_home(self) -> Path:
        """Pulumi's settings and credentials of this box."""
        return self.path / "pulumi-home"

    @property
    def port(self) -> Path:
        """The port of the last daemon; the next one reuses it, so that open shells reach the new box."""
        return self.path / "port"


def open_log(path: Path) -> int:
    """A descriptor that appends to the file; only its owner may read it, because calls name the user's resources."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(handle, 0o600)
    return handle


def default_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The default state directory: CORRAL_BOX_DIR, or one below XDG_STATE_HOME."""
    if chosen := environ.get("CORRAL_BOX_DIR"):
        return Path(chosen)
    state_home = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".local/state")
    return Path(state_home) / "corral" / "box"
