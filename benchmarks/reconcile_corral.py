"""corral's side of benchmarks/reconcile.py: two compares of a keeper, the second counted. `reconcile_corral.py DIR`.

The second is a minute later by the keeper's clock, when what it found at the first one is due.
"""

import logging
import sys
import time
from functools import partial
from pathlib import Path

from outside import Outside, exit_told

from corral.agent import slurm
from corral.agent.answers import lean
from corral.agent.decide import LOST_AFTER_S
from corral.agent.ec2 import Ec2
from corral.agent.events import Journal
from corral.agent.machine import impatient, records_in
from corral.agent.memory import Memory, save
from corral.agent.turn import Keeper


def main(place: Path) -> None:
    """Compares twice."""
    logging.basicConfig(level=logging.INFO, filename=place / "corral.log")
    plan, deployed = records_in(place)
    ec2, later = Ec2(lean(impatient("ec2", deployed.region)), plan.name), [0.0]
    journal, write = Journal(place / "events.jsonl"), partial(save, file=place / "keeper.json")
    keeper = Keeper(plan, deployed, ec2, slurm, write, lambda: time.time() + later[0], journal, Memory())
    keeper.compare(frozenset(), ())
    later[0] = LOST_AFTER_S + 1
    (place / "calls").write_text("", encoding="utf-8")
    outside = Outside()
    keeper.compare(frozenset(), ())
    exit_told(outside, str(place / "corral.json"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
