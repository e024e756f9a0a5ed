"""Create people's homes: on the shared /home, which hides the image's own, and on a head those of administrators."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from corral.agent.errors import AgentError
from corral.model.users import ADMIN_HOMES, HOMES

_SKELETON = "/etc/skel"

log = logging.getLogger("corral.agent")


def make_home(user: str, run: Callable[[Sequence[str]], str], root: Path = Path("/")) -> None:
    """Create the user's homes from /etc/skel if they are missing. Raises AgentError.

    An administrator has one on /home, as everybody, and on a head with login nodes one of the head's own.
    `run`: runs a command and returns its output, or raises AgentError. `root`: the directory that stands for /.
    """
    try:
        entry = run(("getent", "passwd", user)).strip().split(":")
    except AgentError:
        log.warning("home: the machine has no user %s", user)
        return
    if entry[5] == f"{ADMIN_HOMES}/{user}":
        run(("install", "--directory", "--mode=0755", ADMIN_HOMES))
        _make(user, entry, f"{HOMES}/{user}", run, root)
    _make(user, entry, entry[5], run, root)


def _make(user: str, entry: Sequence[str], home: str, run: Callable[[Sequence[str]], str], root: Path) -> None:
    owner = ":".join(entry[2:4])
    existing = root / home.lstrip("/")
    if existing.exists():
        if existing.stat().st_uid != int(entry[2]):
            log.error("home: %s belongs to uid %d, and %s is %s", home, existing.stat().st_uid, user, entry[2])
        return
    new = str(Path(home).with_name(f".corral-{user}"))  # renamed when complete
    run(("rm", "--recursive", "--force", new))
    run(("cp", "--recursive", _SKELETON, new))
    run(("install", "--directory", "--mode=0700", f"{new}/.ssh"))
    run(("chown", "--recursive", "--no-dereference", owner, new))
    # 0750 if the group is the person's own; a directory may give one group to everybody.
    run(("chmod", "0750" if entry[2] == entry[3] else "0700", new))
    run(("mv", "--no-target-directory", new, home))
    log.info("home: created %s for %s", home, user)
