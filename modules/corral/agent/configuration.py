"""Whether a later `corral up` has been here: one request a minute, and `apply` where it has. The keeper's chore."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.apply import Result
from corral.agent.apply_command import CODES
from corral.agent.hosts import HostError
from corral.agent.leaving import NOTE
from corral.agent.pending import is_pending

LOOK_EACH_S = 60.0
_SLURM_CONF = Path("/etc/slurm/slurm.conf")


@dataclass(kw_only=True)
class Configuration:
    """`tag`: the version of the manifest in the bucket. `apply`: does it, in a process of its own; the keeper sees by
    itself that its records are others then. An apply that was refused is not repeated until the next up; one that ended
    otherwise is. `pending`: whether one has ended before it was done, whoever began it.
    """

    tag: Callable[[], str]
    apply: Callable[[], object]
    slurm_conf: Path = _SLURM_CONF
    pending: Callable[[], bool] = is_pending
    _seen: str | None = None

    def look(self) -> None:
        """Applies what is new, and what could not be before. Raises AgentError."""
        tag = self.tag()
        if tag != self._seen or self.pending() or self._has_leaving():
            try:
                self.apply()
            except HostError as error:
                if error.code == CODES[Result.REFUSED]:
                    self._seen = tag
                raise
        self._seen = tag

    def _has_leaving(self) -> bool:
        """Whether something is only there because it was in use; by now it may be free."""
        return self.slurm_conf.exists() and NOTE in self.slurm_conf.read_text(encoding="utf-8")
