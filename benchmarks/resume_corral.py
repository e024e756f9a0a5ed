"""corral's side of benchmarks/resume.py: a running autoscaler processes a request. `resume_corral.py DIR`.

It prints `ready`, waits for a line on stdin, processes the requests, and writes its usage to DIR/corral.json.
"""

import logging
import sys
import time
from functools import partial
from pathlib import Path

from aws_usage import AwsUsage, write_usage

from corral.agent import slurm
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.autoscaler.request_queue import pending_requests, remove
from corral.agent.cluster.boto_parsing import parse_used_fields
from corral.agent.cluster.ec2_client import Ec2
from corral.agent.cluster.state import AutoscalerState, save_state
from corral.agent.dns import Zone
from corral.agent.events import EventLog
from corral.agent.runtime_context import client_without_retries, records_in


def main(directory: Path) -> None:
    """Process the requests in DIR/requests once."""
    logging.basicConfig(level=logging.INFO, filename=directory / "corral.log")
    plan, deployed = records_in(directory)
    ec2 = Ec2(parse_used_fields(client_without_retries("ec2", deployed.region)), plan.name)
    zone = Zone(client_without_retries("route53", deployed.region), deployed.hosted_zone, plan.dns_zone)
    journal, write = EventLog(directory / "events.jsonl"), partial(save_state, file=directory / "autoscaler.json")
    autoscaler = Autoscaler(plan, deployed, ec2, slurm, write, time.time, journal, AutoscalerState(), dns_names=zone)
    print("ready", flush=True)
    sys.stdin.readline()
    usage = AwsUsage()
    left = autoscaler.process_requests(
        tuple(pending_requests(directory / "requests")), partial(remove, spool=directory / "requests")
    )
    write_usage(usage, str(directory / "corral.json"))
    sys.exit(f"{len(left)} nodes were not launched" if left else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
