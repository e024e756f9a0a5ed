"""How a job that is hidden from `corral diagnose` is described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HOME = "/home/ada"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job. `options`: of its program. `fault`: what is wrong with it, on these `nodes`, and `why` one calls it that.

    `until`: it ends, its user cancels it, or it is still running when it is diagnosed, perhaps for the second time.
    Without `after_s`, it has run for long enough after many steps. `readings`: what nvidia-smi answers on a node, one
    text after the other. A job with readings has these nodes alone.
    """

    options: str = ""
    script: str = "jax"
    program: str = "trains.py"
    variables: str = ""
    nodes: int = 2
    tasks: int = 2
    gpus: int = 2
    where: str = ""
    sbatch: str = "--mem=2G"
    directory: str = HOME
    until: str = "ends"
    after_s: float = 0.0
    readings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fault: str = ""
    on: str = ""
    why: str = ""
