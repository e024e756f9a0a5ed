"""corral's side of benchmarks/resume.py: a keeper that runs already, and answers a note. `resume_corral.py DIR`.

It says `ready`, waits for a line, and answers what it finds; what it took is in DIR/corral.json.
"""

import logging
import sys
import time
from functools import partial
from pathlib import Path

from outside import Outside, exit_told

from corral.agent import slurm
from corral.agent.answers import lean
from corral.agent.dns import Zone
from corral.agent.ec2 import Ec2
from corral.agent.events import Journal
from corral.agent.machine import impatient, records_in
from corral.agent.memory import Memory, save
from corral.agent.spool import notes, remove
from corral.agent.turn import Keeper


def main(place: Path) -> None:
    """Answers the notes of DIR/notes once."""
    logging.basicConfig(level=logging.INFO, filename=place / "corral.log")
    plan, deployed = records_in(place)
    ec2 = Ec2(lean(impatient("ec2", deployed.region)), plan.name)
    zone = Zone(impatient("route53", deployed.region), deployed.hosted_zone, plan.dns_zone)
    journal, write = Journal(place / "events.jsonl"), partial(save, file=place / "keeper.json")
    keeper = Keeper(plan, deployed, ec2, slurm, write, time.time, journal, Memory(), naming=zone)
    print("ready", flush=True)
    sys.stdin.readline()
    outside = Outside()
    left = keeper.answer(tuple(notes(place / "notes")), partial(remove, spool=place / "notes"))
    exit_told(outside, str(place / "corral.json"))
    sys.exit(f"{len(left)} nodes were not answered" if left else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
