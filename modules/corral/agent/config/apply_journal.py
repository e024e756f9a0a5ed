"""The journal of an apply, from which the next one completes it: two marks next to the agent.

A mark exists before the first file changes, and is removed after the last step. A newer agent may read `apply.json`: if
it cannot, it takes every step. `renewed` means that the agent's daemons still run older code.
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.config.diff import ApplyStep
from corral.agent.file_install import Placement, install
from corral.model.serialization import from_json, to_json

HOME = Path("/opt/corral")
_FILES, _AGENT = "apply.json", "renewed"
_POSTPONED = b"refused\n"
_ALL = tuple(step for step in ApplyStep if step is not ApplyStep.RESTART_AGENT)  # which has its own mark
_ROOT_ONLY = 0o600  # it contains the former slurmdbd.conf


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerFile:
    """A file before the apply: its bytes in base64, None if it did not exist."""

    path: str
    content: str | None = None
    mode: int = 0o644
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApply:
    """The files of an apply and the steps that they require. `back`: the files with which slurmctld last started.

    `installed`: all files are installed, and steps may have been taken; otherwise only files may have changed.
    """

    paths: tuple[str, ...]
    steps: tuple[ApplyStep, ...]
    back: tuple[FormerFile, ...] = ()
    installed: bool = False


def is_pending(home: Path = HOME) -> bool:
    """True if an apply was interrupted. A refused one is complete; its mark waits for the next configuration."""
    mark = renewed_mark(home)
    return (home / _FILES).exists() or (mark.exists() and mark.read_bytes() != _POSTPONED)


def read(home: Path) -> PendingApply | None:
    """The interrupted apply; None without one."""
    try:
        return from_json(PendingApply, (home / _FILES).read_text(encoding="utf-8"), lenient=True)
    except FileNotFoundError:
        return None
    except ValueError:
        return PendingApply(paths=(), steps=_ALL, installed=True)


def write(pending: PendingApply, home: Path) -> None:
    """Write the journal, atomically."""
    mark = Placement(path=f"/{_FILES}", content=to_json(pending).encode(), mode=_ROOT_ONLY)
    install((mark,), home)


def clear(home: Path) -> None:
    """Remove the journal: the apply is complete."""
    (home / _FILES).unlink(missing_ok=True)


def renewed_mark(home: Path) -> Path:
    """The mark that the agent's daemons must restart. Their restart removes it."""
    return home / _AGENT


def is_renewed(home: Path) -> bool:
    """True if the agent's daemons must still restart."""
    return renewed_mark(home).exists()


def mark_renewed(home: Path) -> None:
    """Mark that the agent's daemons must restart."""
    install((Placement(path=f"/{_AGENT}", content=b""),), home)


def postpone_renewed(home: Path) -> None:
    """Postpone the restart to the next configuration: this one was refused."""
    install((Placement(path=f"/{_AGENT}", content=_POSTPONED),), home)


def former(placement: Placement, root: Path) -> FormerFile:
    """The present file at the path of this placement."""
    file = root / placement.path.lstrip("/")
    if not file.is_file():
        return FormerFile(path=placement.path)
    content = base64.b64encode(file.read_bytes()).decode("ascii")
    return FormerFile(path=placement.path, content=content, mode=file.stat().st_mode & 0o7777, owner=placement.owner)


def restore(files: Iterable[FormerFile], root: Path) -> None:
    """Restore these files."""
    for one in files:
        if one.content is None:
            (root / one.path.lstrip("/")).unlink(missing_ok=True)
        else:
            content = base64.b64decode(one.content)
            install((Placement(path=one.path, content=content, mode=one.mode, owner=one.owner),), root)
