"""`make demo`: the shipped environment `dev` from plan to teardown, in the box.

Everything is in one temporary directory: the checkout does not change, and only a page is left. Each step prints the
command that a user would type, and its output.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

import alert_steps
import job_steps
import stack_steps
from session import CHECKOUT, DemoSession, Unexpected

STEPS: Sequence[tuple[str, Callable[[DemoSession], None]]] = (
    ("Plan: resources and cost", stack_steps.plan),
    ("Start the box, a local AWS emulator", stack_steps.start_box),
    ("Up: the real Pulumi engine, both stacks", stack_steps.up),
    ("A launch template of p4d.24xlarge, and two machines from it", stack_steps.launch_from_template),
    ("The head: a real slurmctld with the rendered files", job_steps.show_head),
    ("A job with 16 GPUs, on machines that do not exist yet", job_steps.run_job),
    ("A model trains on two machines with 16 GPUs", job_steps.train),
    (
        "A machine slows a job down: an alert arrives, `corral diagnose` names it",
        alert_steps.find_slow_node,
    ),
    ("The head is lost, and replaced with the same address and state", job_steps.lose_head),
    ("A spot interruption hits the same training", job_steps.interrupt_training),
    ("From 4 nodes to 6, idle for one minute only: the preview shows the lines of slurm.conf", stack_steps.grow),
    ("Plain `pulumi up` finds nothing to do in either stack", stack_steps.expect_no_changes),
    ("Idle machines terminate", job_steps.wait_until_idle),
    ("The timeline as a page", job_steps.timeline),
    ("Down, with the base: what is retained, and its cost", stack_steps.down),
    ("The timeline from the recorded history", job_steps.recorded_timeline),
    ("Delete the data too, by the name of its base", stack_steps.delete_data),
)


def main() -> int:
    """Return 0 if every step had the expected result."""
    options = argparse.ArgumentParser(prog="make demo", description=__doc__)
    options.add_argument("--keep", action="store_true", help="keep the directory, and the box running, at the end")
    keep = options.parse_args().keep
    signal.signal(signal.SIGTERM, _interrupt)
    start, stacks, demo = monotonic(), _stacks(), DemoSession(Path(tempfile.mkdtemp(prefix="corral-demo-")))
    durations: list[tuple[str, float]] = []
    try:
        for number, (title, step) in enumerate(STEPS, start=1):
            demo.title(f"{number}. {title}")
            step_start = monotonic()
            step(demo)
            durations.append((title, monotonic() - step_start))
        if _stacks() != stacks:
            raise Unexpected("the demo changed the checkout's stacks")
    except Unexpected as problem:
        print(f"\nThe demo stopped: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nThe demo was interrupted.", file=sys.stderr)
        return 130
    finally:
        _clean_up(demo, keep=keep)
    if not keep and demo.directory.exists():
        print(f"\nThe demo could not remove {demo.directory}", file=sys.stderr)
        return 1
    demo.title("Summary")
    for title, seconds in durations:
        print(f"  {seconds:6.1f} s  {title}")
    print(f"  {monotonic() - start:6.1f} s  in total. Only two keys are left, which are scheduled for deletion.")
    print(f"\nThe timeline as a page: {job_steps.PAGE}")
    return 0


def _stacks() -> Mapping[Path, bytes]:
    """The files of the checkout's stacks; the demo works on a copy of them."""
    found = (file for file in (CHECKOUT / "stacks").rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file: file.read_bytes() for file in found}


def _interrupt(*_: object) -> None:
    """Treat SIGTERM, which `timeout` and CI send, as Ctrl-C: the box and its machines end."""
    raise KeyboardInterrupt


def _clean_up(demo: DemoSession, *, keep: bool) -> None:
    if keep:
        print(f"\nKept: {demo.directory}; `corral box stop --dir {demo.box}` stops the box.")
        return
    demo.stop()
    shutil.rmtree(demo.directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
