"""The layout of a box's state directory: which file is where, and how those that grow are opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The names of everything that one box keeps."""

    path: Path

    @property
    def record(self) -> Path:
        """box.json: who serves this directory and where; it exists while a daemon is ready."""
        return self.path / "box.json"

    @property
    def lock(self) -> Path:
        """The file that the daemon holds a lock on for as long as it lives."""
        return self.path / "lock"

    @property
    def cloud(self) -> Path:
        """The saved state of the cloud."""
        return self.path / "cloud.pickle"

    @property
    def objects(self) -> Path:
        """The contents of large S3 objects, beside the saved state that names them."""
        return self.path / "objects"

    @property
    def machines(self) -> Path:
        """What machines consist of: their disks by instance, and what they share."""
        return self.path / "machines"

    @property
    def system(self) -> Path:
        """A link to the root directory of the system that machines are; it is missing where that is this one."""
        return self.path / "system"

    @property
    def log(self) -> Path:
        """What the daemon says."""
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
        """Where that backend keeps what it knows of each stack."""
        return self.pulumi / ".pulumi" / "stacks"

    @property
    def pulumi_home(self) -> Path:
        """Pulumi's settings and credentials of this box."""
        return self.path / "pulumi-home"

    @property
    def port(self) -> Path:
        """The port of the last daemon; the next one takes it again, so that shells keep pointing at the box."""
        return self.path / "port"


def open_log(path: Path) -> int:
    """A descriptor that appends to the file, which from now on only its owner may read: calls name what people made."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(handle, 0o600)
    return handle


def default_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The state directory that is meant when none is named: CORRAL_BOX_DIR, else below XDG_STATE_HOME."""
    if chosen := environ.get("CORRAL_BOX_DIR"):
        return Path(chosen)
    state_home = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".local/state")
    return Path(state_home) / "corral" / "box"
