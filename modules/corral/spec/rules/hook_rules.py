"""Rules about own programs that Slurm runs: scripts name their interpreter, plugins stand in lines that Slurm reads."""

from __future__ import annotations

from collections.abc import Iterator

from corral.model.containers import ContainerRuntime
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.models.slurm import SlurmSpec
from corral.spec.rules.slurm_value_rules import has_plugin
from corral.spec.spec_errors import SpecFinding

SCRIPTS = ("prolog", "epilog", "prolog_slurmctld", "epilog_slurmctld")
LARGEST_BYTES = 64 << 10  # of a text: cluster.json has them all, and each machine downloads it
LUA_PLUGIN = "lua"


def check(spec: ClusterSpecInput) -> Iterator[SpecFinding]:
    """Yield findings about the scripts and plugins of `slurm`."""
    slurm = spec.slurm
    for key in SCRIPTS:
        text = getattr(slurm, key)
        if text is not None and not text.startswith("#!/"):
            yield SpecFinding(("slurm", key), "does not begin with the path of its interpreter", "begin with #!/bin/sh")
    for key in (*SCRIPTS, "job_submit"):
        text = getattr(slurm, key)
        if text is not None and len(text.encode()) > LARGEST_BYTES:
            found = f"has {len(text.encode()):,} bytes, the most is {LARGEST_BYTES:,}"
            yield SpecFinding(("slurm", key), found, "put programs into your image, and call them")
    yield from _check_job_submit(slurm)
    own = next((key for key in slurm.extra if key.lower() == "taskprolog"), None)
    if own and spec.containers is ContainerRuntime.PYXIS:
        found = "runs inside of each container, where the program is missing"
        yield SpecFinding(("slurm", "extra", own), found, "use slurm.prolog, or a SPANK plugin in slurm.plugstack")
    for number, line in enumerate(slurm.plugstack):
        yield from _check_plugin(number, line)
        if spec.containers is ContainerRuntime.PYXIS and "spank_pyxis.so" in line:
            found = f"{line!r} loads Pyxis again, which containers: pyxis does"
            yield SpecFinding(("slurm", "plugstack", number), found, "remove one of the two")


def _check_job_submit(slurm: SlurmSpec) -> Iterator[SpecFinding]:
    if slurm.job_submit is None:
        return
    if "slurm_job_submit" not in slurm.job_submit or "slurm_job_modify" not in slurm.job_submit:
        # Both are required: lua plugins of Slurm refuse a script without one of them.
        yield SpecFinding(
            ("slurm", "job_submit"), "lacks slurm_job_submit or slurm_job_modify, which Slurm requires", "add both"
        )
    for key, plugins in slurm.extra.items():
        if key.lower() == "jobsubmitplugins" and not has_plugin(plugins, LUA_PLUGIN):
            loc = ("slurm", "extra", key)
            yield SpecFinding(loc, f"{plugins!r} does not load slurm.job_submit", f"use {plugins},{LUA_PLUGIN}")


def _check_plugin(number: int, line: str) -> Iterator[SpecFinding]:
    loc = ("slurm", "plugstack", number)
    words = line.split()
    if "\n" in line or not words:
        yield SpecFinding(loc, f"{line!r} is not one line of plugstack.conf", "use an item of the list for each")
    elif words[0] == "include":
        # Slurm sends plugstack.conf to the nodes, but no file that it includes.
        yield SpecFinding(loc, f"{line!r}: nodes do not receive included files", "list the plugins themselves")
    elif words[0] not in ("required", "optional") or len(words) == 1:
        yield SpecFinding(loc, f"{line!r} is not a line of plugstack.conf", "use optional PLUGIN.so ARGUMENTS")
