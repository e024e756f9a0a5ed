"""What an apply has begun and not ended, so that the next one ends it: two marks beside the agent, on the same disk as
the files that they speak of. A mark is there before the first of these changes, and goes after the last step.

`apply.json` is written by one agent and may be read by a newer one: what cannot be read means every step. `renewed`
says that the agent's code is another than that which its daemons began with.
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.changes import Step
from corral.agent.install import Placement, install
from corral.model.jsons import from_json, to_json

HOME = Path("/opt/corral")
_FILES, _AGENT = "apply.json", "renewed"
_POSTPONED = b"refused\n"
_ALL = tuple(step for step in Step if step is not Step.RESTART_AGENT)  # for which there is the other mark
_ROOTS_ALONE = 0o600  # it holds what slurmdbd.conf was


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """A file as it was: its bytes in base64, None where there was none."""

    path: str
    content: str | None = None
    mode: int = 0o644
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The steps that must follow these files. `back`: what they were when slurmctld last began with them.

    `told`: all files are installed, and the first step may have been done; else nothing but files can have changed.
    """

    paths: tuple[str, ...]
    steps: tuple[Step, ...]
    back: tuple[Former, ...] = ()
    told: bool = False


def is_pending(home: Path = HOME) -> bool:
    """True if an apply has ended before it was done. One that was refused is done: what it left waits for the next."""
    mark = renewed_mark(home)
    return (home / _FILES).exists() or (mark.exists() and mark.read_bytes() != _POSTPONED)


def read(home: Path) -> Pending | None:
    """What an apply has left, None where there is nothing."""
    try:
        return from_json(Pending, (home / _FILES).read_text(encoding="utf-8"), lenient=True)
    except FileNotFoundError:
        return None
    except ValueError:
        return Pending(paths=(), steps=_ALL, told=True)


def write(pending: Pending, home: Path) -> None:
    """Marks that this is to be done. Whole or not at all."""
    mark = Placement(path=f"/{_FILES}", content=to_json(pending).encode(), mode=_ROOTS_ALONE)
    install((mark,), home)


def end(home: Path) -> None:
    """It is done."""
    (home / _FILES).unlink(missing_ok=True)


def renewed_mark(home: Path) -> Path:
    """The mark that the agent's daemons have to begin anew; it goes when they have."""
    return home / _AGENT


def is_renewed(home: Path) -> bool:
    """True if the agent's daemons still have to begin anew."""
    return renewed_mark(home).exists()


def mark_renewed(home: Path) -> None:
    """Marks that the agent's daemons have to begin anew."""
    install((Placement(path=f"/{_AGENT}", content=b""),), home)


def postpone_renewed(home: Path) -> None:
    """They do with the next configuration: this one was refused."""
    install((Placement(path=f"/{_AGENT}", content=_POSTPONED),), home)


def former(placement: Placement, root: Path) -> Former:
    """What is now where this one will be."""
    file = root / placement.path.lstrip("/")
    if not file.is_file():
        return Former(path=placement.path)
    content = base64.b64encode(file.read_bytes()).decode("ascii")
    return Former(path=placement.path, content=content, mode=file.stat().st_mode & 0o7777, owner=placement.owner)


def take_back(files: Iterable[Former], root: Path) -> None:
    """Makes these files what they were."""
    for one in files:
        if one.content is None:
            (root / one.path.lstrip("/")).unlink(missing_ok=True)
        else:
            content = base64.b64decode(one.content)
            install((Placement(path=one.path, content=content, mode=one.mode, owner=one.owner),), root)
