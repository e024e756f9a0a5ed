"""ParallelCluster's side of benchmarks/resume.py: its ResumeProgram, `slurm_resume NODES`, with what it asks counted.

Run with the Python that holds aws-parallelcluster-node: `resume_parallelcluster.py DIR NODES`.
"""

import logging
import sys

from outside import Outside, exit_told


def main(place: str, nodes: str) -> None:
    """Runs it once; what it took is in DIR/parallelcluster.json."""
    outside = Outside()
    from slurm_plugin import resume

    configure = logging.basicConfig  # it names a file that only a head of ParallelCluster has
    logging.basicConfig = lambda **words: configure(**{**words, "filename": f"{place}/parallelcluster.log"})
    sys.argv = ["slurm_resume", nodes]
    resume.main()
    exit_told(outside, f"{place}/parallelcluster.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
