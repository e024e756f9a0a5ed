"""corral's side of benchmarks/reconcile.py: two reconciliations, the second one counted. `reconcile_corral.py DIR`.

By the autoscaler's clock, the second comes a minute later, when the findings of the first are due.
"""

import logging
import sys
import time
from functools import partial
from pathlib import Path

from aws_usage import AwsUsage, write_usage

from corral.agent import slurm
from corral.agent.autoscaler.decide import LOST_AFTER_S
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.cluster.boto_parsing import parse_used_fields
from corral.agent.cluster.ec2_client import Ec2
from corral.agent.cluster.state import AutoscalerState, save_state
from corral.agent.events import EventLog
from corral.agent.runtime_context import client_without_retries, records_in


def main(directory: Path) -> None:
    """Reconcile twice."""
    logging.basicConfig(level=logging.INFO, filename=directory / "corral.log")
    plan, deployed = records_in(directory)
    ec2, offset_s = Ec2(parse_used_fields(client_without_retries("ec2", deployed.region)), plan.name), [0.0]
    journal, write = EventLog(directory / "events.jsonl"), partial(save_state, file=directory / "autoscaler.json")
    autoscaler = Autoscaler(
        plan, deployed, ec2, slurm, write, lambda: time.time() + offset_s[0], journal, AutoscalerState()
    )
    autoscaler.reconcile(frozenset(), ())
    offset_s[0] = LOST_AFTER_S + 1
    (directory / "calls").write_text("", encoding="utf-8")
    usage = AwsUsage()
    autoscaler.reconcile(frozenset(), ())
    write_usage(usage, str(directory / "corral.json"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
