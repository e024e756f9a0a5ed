"""An environment's own programs: the files that Slurm runs or loads, and the keys of slurm.conf that name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corral.model.hooks import HooksPlan
from corral.render.conf_line import Value

# Slurm ends a program after this time; BatchStartTimeout begins after it (slurm.conf(5), PrologEpilogTimeout).
TIMEOUT_S = 300
# Debian's own file includes /etc/slurm/plugstack.conf.d/*.conf. This one does not: slurmctld sends no included file to
# nodes, and newer ones log the pattern as an error at each start.
_PLUGSTACK = "# Managed by corral: do not edit. The lines of `slurm.plugstack`, which nodes receive, too.\n"


def hook_files(hooks: HooksPlan, plugins: Sequence[str] = ()) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix. `plugins`: corral's own lines of plugstack.conf."""
    texts = {
        "hooks/prolog": hooks.prolog,
        "hooks/epilog": hooks.epilog,
        "hooks/prolog-slurmctld": hooks.prolog_slurmctld,
        "hooks/epilog-slurmctld": hooks.epilog_slurmctld,
        "slurm/job_submit.lua": hooks.job_submit,
    }
    return {
        "slurm/plugstack.conf": "".join((_PLUGSTACK, *(f"{line}\n" for line in (*plugins, *hooks.plugstack)))),
        **{path: text if text.endswith("\n") else f"{text}\n" for path, text in texts.items() if text},
    }


def hook_settings(hooks: HooksPlan, programs: str) -> Mapping[str, Value]:
    """The settings of slurm.conf that name them; None for what is not declared."""
    return {
        "PrologSlurmctld": f"{programs}/prolog-slurmctld" if hooks.prolog_slurmctld else None,
        "EpilogSlurmctld": f"{programs}/epilog-slurmctld" if hooks.epilog_slurmctld else None,
    }


def hook_defaults(hooks: HooksPlan) -> Mapping[str, Value]:
    """The settings that users may override in `slurm.extra`; None for what is not needed."""
    return {
        "JobSubmitPlugins": "lua" if hooks.job_submit else None,
        "PrologEpilogTimeout": TIMEOUT_S if hooks.runs_programs else None,
    }
