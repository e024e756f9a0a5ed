"""`make demo`: the life of the shipped environment `dev`, in an AWS on this machine.

All lies in one temporary directory; nothing in the checkout changes, and nothing is left but a page. Each step prints
the command that a person would type, and what it answered.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from stage import Stage, Unexpected

import steps

STEPS: Sequence[tuple[str, Callable[[Stage], None]]] = (
    ("What would exist, and what it would cost", steps.plan),
    ("An AWS on this machine", steps.start_box),
    ("Up: the real Pulumi engine, both stacks", steps.up),
    ("A launch template of p4d.24xlarge, and two machines from it", steps.launch),
    ("The head: a real slurmctld, with the rendered files", steps.slurm),
    ("A job with 16 GPUs, on machines that do not exist yet", steps.job),
    ("A model trains on two machines with 16 GPUs", steps.train),
    ("The head is lost, and comes back with its address and state", steps.lose_head),
    ("A spot machine is taken back under the same training", steps.spot),
    ("From 4 nodes to 6, idle for a minute only: the preview shows the lines of slurm.conf", steps.grow),
    ("Plain `pulumi up` finds nothing to do in either", steps.expect_no_changes),
    ("Idle machines are gone", steps.idle),
    ("All of it as a picture", steps.timeline),
    ("Down, with the base: what is kept, and what it costs", steps.down),
    ("The data too, by its name", steps.delete_all),
)


def main() -> int:
    """0 where every step did what it should."""
    options = argparse.ArgumentParser(prog="make demo", description=__doc__)
    options.add_argument("--keep", action="store_true", help="leave the directory and the box as they are at the end")
    keep = options.parse_args().keep
    signal.signal(signal.SIGTERM, _terminated)
    began, stage = monotonic(), Stage(Path(tempfile.mkdtemp(prefix="corral-demo-")))
    timeline: list[tuple[str, float]] = []
    try:
        for number, (title, step) in enumerate(STEPS, start=1):
            stage.title(f"{number}. {title}")
            start = monotonic()
            step(stage)
            timeline.append((title, monotonic() - start))
    except Unexpected as problem:
        print(f"\nThe demo stopped: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nThe demo was interrupted.", file=sys.stderr)
        return 130
    finally:
        _end(stage, keep=keep)
    stage.title("What happened")
    for title, seconds in timeline:
        print(f"  {seconds:6.1f} s  {title}")
    print(f"  {monotonic() - began:6.1f} s  in all. Nothing is left but a key that waits for its deletion.")
    print(f"\nThe picture as a page: {steps.PAGE}")
    return 0


def _terminated(*_: object) -> None:
    """What `timeout` or a CI sends: the box and its machines end as after Ctrl-C."""
    raise KeyboardInterrupt


def _end(stage: Stage, *, keep: bool) -> None:
    if keep:
        print(f"\nKept: {stage.directory}; `corral box stop --dir {stage.box}` ends the box.")
        return
    stage.stop()
    shutil.rmtree(stage.directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
