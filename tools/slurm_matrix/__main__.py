"""`make slurm-matrix`: render every shipped environment for every Slurm release, and load it where that is installed.

Prints one row for each release, with the result for each environment. Differences between the plan and what Slurm
read, and the warnings of Slurm, are listed below the table.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tools.slurm_head.controller import SlurmError
from tools.slurm_matrix.comparison import differences
from tools.slurm_matrix.roots import slurm_roots

from corral.catalog.slurm.releases import RELEASES, release_text
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render import cluster_files
from corral.spec.yaml.stack_files import environments, read_environment

PROJECT = Path(__file__).resolve().parents[2]
LOADED, RENDERED, DIFFERS = "loaded", "rendered only", "DIFFERS"


def main() -> int:
    """Return 1 if a Slurm read an environment differently from its plan, else 0."""
    roots = slurm_roots()
    plans = {name: plan_of(name) for name in environments(PROJECT)}
    rows, problems = [], []
    for release in sorted({*map(release_text, RELEASES), *roots}):
        found = {name: check(for_release(plan, release), roots.get(release)) for name, plan in plans.items()}
        rows.append((release, *(result(found[name]) for name in plans)))
        problems += [f"{release}, {name}: {line}" for name, lines in found.items() for line in lines or ()]
    print_table(("Slurm", *plans), rows)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def plan_of(name: str) -> ClusterPlan:
    """The plan of a shipped environment."""
    environment = read_environment(PROJECT, name)
    return plan_cluster(environment.cluster, plan_base(environment.base), catalog=environment.catalog)


def for_release(plan: ClusterPlan, release: str) -> ClusterPlan:
    """The same cluster on an image with another Slurm release."""
    return replace(plan, image=replace(plan.image, slurm_version=release))


def check(plan: ClusterPlan, root: Path | None) -> Sequence[str] | None:
    """The differences from the plan in this Slurm; None without one: the plan is then only rendered."""
    if root is None:
        cluster_files(plan)
        return None
    with tempfile.TemporaryDirectory(prefix="corral-slurm-") as directory:
        try:
            return differences(plan, root, Path(directory))
        except SlurmError as error:
            return [str(error)]


def result(found: Sequence[str] | None) -> str:
    """The cell of the table."""
    if found is None:
        return RENDERED
    return DIFFERS if found else LOADED


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the rows in aligned columns."""
    widths: Mapping[int, int] = {n: max(len(row[n]) for row in (head, *rows)) for n in range(len(head))}
    for row in (head, *rows):
        print("  ".join(word.ljust(widths[n]) for n, word in enumerate(row)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
