"""ParallelCluster's side of benchmarks/resume.py: its ResumeProgram, `slurm_resume NODES`.

Run it with the Python that has aws-parallelcluster-node: `resume_parallelcluster.py DIR NODES`.
"""

import logging
import sys

from aws_usage import AwsUsage, write_usage


def main(directory: str, nodes: str) -> None:
    """Run it once; write its usage to DIR/parallelcluster.json."""
    usage = AwsUsage()
    from slurm_plugin import resume

    configure = logging.basicConfig  # it names a log file that exists only on a ParallelCluster head
    logging.basicConfig = lambda **options: configure(**{**options, "filename": f"{directory}/parallelcluster.log"})
    sys.argv = ["slurm_resume", nodes]
    resume.main()
    write_usage(usage, f"{directory}/parallelcluster.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
