"""How long the search for a layout takes on 16,384 accelerators: a dense model as it was trained, and mixtures.

The mixture with many experts, long sequences and a batch of many divisors has the most layouts to look at. What is
found is asserted by tests/forecast/test_training_choose.py. There is nothing of ParallelCluster's to compare with.
"""

import statistics
import sys
import time

from table import Row, print_table

from corral.catalog.accelerators import find_accelerator
from corral.catalog.models import find_model
from corral.forecast.training.choose import choose
from corral.forecast.training.job import Precision
from corral.forecast.training.network import machine_of
from corral.forecast.training.open_job import OpenJob

NODES, ROUNDS = 2048, 5  # of eight H100
MOST_S = 2.0  # what somebody waits for without a thought
CASES = (
    ("llama3-405b", 8192, 2048),
    ("mixtral-8x22b", 32768, 15360),
    ("qwen3-235b-a22b", 32768, 15360),
)  # model, tokens of a sequence, sequences of a step


def main() -> int:
    """Measures and prints the table."""
    print_table(rows())
    return 0


def rows(rounds: int = ROUNDS) -> list[Row]:
    """What was measured, a row for each model: the median."""
    return [_row(*case, rounds) for case in CASES]


def _row(model: str, seq_len: int, batch: int, rounds: int) -> Row:
    job = OpenJob(
        shape=find_model(model),
        machine=machine_of(find_accelerator("H100-80"), None),
        nodes=NODES,
        per_node=8,
        host_gib=230.0,
        seq_len=seq_len,
        global_batch=batch,
        precision=Precision.BF16,
    )
    taken = [_seconds(job) for _ in range(rounds)]
    print(f"  {model}: {', '.join(f'{seconds:.2f}' for seconds in taken)} s", file=sys.stderr)
    what = f"layout of {model} for {job.accelerators:,} accelerators"
    return Row(what=what, unit="s", ours=statistics.median(taken), most=MOST_S)


def _seconds(job: OpenJob) -> float:
    begun = time.perf_counter()
    if choose(job).best is None:
        raise SystemExit(f"{job.shape.name}: no layout fits")
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
