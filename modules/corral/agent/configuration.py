"""Whether a later `corral up` has been here: one request a minute, and `apply` where it has. The keeper's chore."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.leaving import NOTE
from corral.agent.turn import Keeper
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed

LOOK_EACH_S = 60.0
_SLURM_CONF = Path("/etc/slurm/slurm.conf")


@dataclass(kw_only=True)
class Configuration:
    """`tag`: the version of the manifest in the bucket. `apply`: does it, in a process of its own. `records`: those
    that are installed. An apply that was refused is not repeated until the next up.
    """

    tag: Callable[[], str]
    apply: Callable[[], object]
    records: Callable[[], tuple[ClusterPlan, Deployed]]
    slurm_conf: Path = _SLURM_CONF
    _seen: str | None = None

    def look(self, keeper: Keeper) -> None:
        """Applies what is new, and what could not be before; then the keeper works by it. Raises AgentError."""
        tag = self.tag()
        new, self._seen = tag != self._seen, tag
        try:
            if new or self._has_leaving():
                self.apply()
        finally:
            keeper.plan, keeper.deployed = self.records()

    def _has_leaving(self) -> bool:
        """Whether something is only there because it was in use; by now it may be free."""
        return self.slurm_conf.exists() and NOTE in self.slurm_conf.read_text(encoding="utf-8")
