"""Poll for a later `corral up`, once a minute, and apply it. A background task of the autoscaler."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.config.apply import EXIT_CODES, ApplyResult
from corral.agent.config.apply_journal import is_pending
from corral.agent.config.merge import IN_USE_COMMENT
from corral.agent.host.base import HostError

POLL_EVERY_S = 60.0
_SLURM_CONF = Path("/etc/slurm/slurm.conf")


@dataclass(kw_only=True)
class ConfigPoller:
    """`tag`: the version of the manifest in the bucket. `apply`: applies it, in its own process.

    A refused apply is not repeated before the next `corral up`; a failed one is. `pending`: one was interrupted.
    """

    tag: Callable[[], str]
    apply: Callable[[], object]
    slurm_conf: Path = _SLURM_CONF
    pending: Callable[[], bool] = is_pending
    _seen: str | None = None

    def poll(self) -> None:
        """Apply a new configuration, or complete the last one. Raises AgentError."""
        tag = self.tag()
        if tag != self._seen or self.pending() or self._has_pending_removals():
            try:
                self.apply()
            except HostError as error:
                if error.code == EXIT_CODES[ApplyResult.REFUSED]:
                    self._seen = tag
                raise
        self._seen = tag

    def _has_pending_removals(self) -> bool:
        """Whether slurm.conf has removed nodes or queues, which may be free by now."""
        return self.slurm_conf.exists() and IN_USE_COMMENT in self.slurm_conf.read_text(encoding="utf-8")
