"""An environment's own programs that Slurm runs around jobs, and the plugins that it loads."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksPlan:
    """The texts of scripts by the key of slurm.conf that runs them, of job_submit.lua and of plugstack.conf's lines.

    Empty: there is none.
    """

    prolog: str = ""
    epilog: str = ""
    prolog_slurmctld: str = ""
    epilog_slurmctld: str = ""
    job_submit: str = ""
    plugstack: tuple[str, ...] = ()

    @property
    def runs_programs(self) -> bool:
        """Whether Slurm waits for a script around jobs."""
        return any((self.prolog, self.epilog, self.prolog_slurmctld, self.epilog_slurmctld))
