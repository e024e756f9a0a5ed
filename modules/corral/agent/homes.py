"""The home of an image's user, on the file system of homes, which hides those that the image has."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from corral.agent.hosts import HostError

_SKELETON = "/etc/skel"

log = logging.getLogger("corral.agent")


def make_home(user: str, run: Callable[[Sequence[str]], str], root: Path = Path("/")) -> None:
    """Makes the user's home of the system's skeleton, where it is not there. Raises HostError.

    `run`: runs a command and returns what it printed, or raises HostError. `root`: where homes are looked for.
    """
    try:
        entry = run(("getent", "passwd", user)).strip().split(":")
    except HostError:
        log.warning("home: the image has no user %s", user)
        return
    owner, home = ":".join(entry[2:4]), entry[5]
    if (root / home.lstrip("/")).exists():
        return
    new = str(Path(home).with_name(f".corral-{user}"))  # so that half a home never has the name
    run(("rm", "--recursive", "--force", new))
    run(("cp", "--recursive", _SKELETON, new))
    run(("install", "--directory", "--mode=0700", f"{new}/.ssh"))
    run(("chown", "--recursive", "--no-dereference", owner, new))
    run(("chmod", "0750", new))
    run(("mv", "--no-target-directory", new, home))
    log.info("home: %s is made for %s", home, user)
