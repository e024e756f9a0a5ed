"""Whether a later `corral up` has been here: one request a minute, and `apply` where it has. The keeper's chore."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.leaving import NOTE

LOOK_EACH_S = 60.0
_SLURM_CONF = Path("/etc/slurm/slurm.conf")


@dataclass(kw_only=True)
class Configuration:
    """`tag`: the version of the manifest in the bucket. `apply`: does it, in a process of its own; the keeper sees by
    itself that its records are others then. An apply that was refused is not repeated until the next up.
    """

    tag: Callable[[], str]
    apply: Callable[[], object]
    slurm_conf: Path = _SLURM_CONF
    _seen: str | None = None

    def look(self) -> None:
        """Applies what is new, and what could not be before. Raises AgentError."""
        tag = self.tag()
        new, self._seen = tag != self._seen, tag
        if new or self._has_leaving():
            self.apply()

    def _has_leaving(self) -> bool:
        """Whether something is only there because it was in use; by now it may be free."""
        return self.slurm_conf.exists() and NOTE in self.slurm_conf.read_text(encoding="utf-8")
