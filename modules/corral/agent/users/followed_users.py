"""Follow the cluster's people on a node: slurmctld sends users.conf with slurm.conf after each `corral up`."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.errors import AgentError
from corral.model.users import USERS_CONF, AccessPlan, parse_users_conf

# A link of slurmd's to the files that slurmctld has sent (slurmd(8), "--conf-server").
_RECEIVED = Path("/run/slurm/conf") / USERS_CONF

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class FollowedUsers:
    """`act`: gives the machine these people. `file`: missing until slurmd has started."""

    act: Callable[[AccessPlan], object]
    file: Path = _RECEIVED
    _seen: str | None = None

    def poll(self) -> None:
        """Act if the file has changed since the last call. A failure is logged, and the next call repeats it."""
        try:
            text = self.file.read_text(encoding="utf-8")
        except OSError:
            return
        if text == self._seen:
            return
        try:
            self.act(parse_users_conf(text))
        except (AgentError, OSError, ValueError, KeyError) as error:
            log.error("users: %s", error)
        else:
            self._seen = text
