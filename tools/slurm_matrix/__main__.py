"""`make slurm-matrix`: every shipped environment, rendered for every release, loaded where there is that Slurm.

Prints one row for each release and says for each environment how far it was tried. Anything that a Slurm reads
otherwise than was planned, or complains about, is listed below the table.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tools.slurm_matrix.proof import differences
from tools.slurm_matrix.roots import slurm_roots

from corral.box.slurm import SlurmError
from corral.catalog.slurm_releases import RELEASES, release_text
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render import cluster_files
from corral.spec.files import environments, read_environment

PROJECT = Path(__file__).resolve().parents[2]
LOADED, RENDERED, DIFFERS = "loaded", "rendered, unproved", "DIFFERS"


def main() -> int:
    """0 where every environment was loaded, or could only be rendered; 1 where a Slurm made something else of it."""
    roots = slurm_roots()
    plans = {name: planned(name) for name in environments(PROJECT)}
    rows, problems = [], []
    for release in sorted({*map(release_text, RELEASES), *roots}):
        found = {name: tried(for_release(plan, release), roots.get(release)) for name, plan in plans.items()}
        rows.append((release, *(verdict(found[name]) for name in plans)))
        problems += [f"{release}, {name}: {line}" for name, lines in found.items() for line in lines or ()]
    print_table(("Slurm", *plans), rows)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def planned(name: str) -> ClusterPlan:
    """The plan of a shipped environment."""
    environment = read_environment(PROJECT, name)
    return plan_cluster(environment.cluster, plan_base(environment.base), catalogue=environment.catalogue)


def for_release(plan: ClusterPlan, release: str) -> ClusterPlan:
    """The same cluster on an image with another Slurm."""
    return replace(plan, image=replace(plan.image, slurm_version=release))


def tried(plan: ClusterPlan, root: Path | None) -> Sequence[str] | None:
    """What a Slurm makes of it other than planned; None where there is none of that release, so it is only rendered."""
    if root is None:
        cluster_files(plan)
        return None
    with tempfile.TemporaryDirectory(prefix="corral-slurm-") as directory:
        try:
            return differences(plan, root, Path(directory))
        except SlurmError as error:
            return [str(error)]


def verdict(found: Sequence[str] | None) -> str:
    """One word or two for the table."""
    if found is None:
        return RENDERED
    return DIFFERS if found else LOADED


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest word."""
    widths: Mapping[int, int] = {n: max(len(row[n]) for row in (head, *rows)) for n in range(len(head))}
    for row in (head, *rows):
        print("  ".join(word.ljust(widths[n]) for n, word in enumerate(row)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
