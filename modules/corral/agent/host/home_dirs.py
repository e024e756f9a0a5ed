"""Create the default user's home on the shared /home, which hides the image's own."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from corral.agent.host.base import HostError

_SKELETON = "/etc/skel"

log = logging.getLogger("corral.agent")


def make_home(user: str, run: Callable[[Sequence[str]], str], root: Path = Path("/")) -> None:
    """Create the user's home from /etc/skel if it is missing. Raises HostError.

    `run`: runs a command and returns its output, or raises HostError. `root`: the directory that stands for /.
    """
    try:
        entry = run(("getent", "passwd", user)).strip().split(":")
    except HostError:
        log.warning("home: the image has no user %s", user)
        return
    owner, home = ":".join(entry[2:4]), entry[5]
    if (root / home.lstrip("/")).exists():
        return
    new = str(Path(home).with_name(f".corral-{user}"))  # renamed when complete
    run(("rm", "--recursive", "--force", new))
    run(("cp", "--recursive", _SKELETON, new))
    run(("install", "--directory", "--mode=0700", f"{new}/.ssh"))
    run(("chown", "--recursive", "--no-dereference", owner, new))
    run(("chmod", "0750", new))
    run(("mv", "--no-target-directory", new, home))
    log.info("home: created %s for %s", home, user)
