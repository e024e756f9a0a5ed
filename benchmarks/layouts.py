"""Measure the layout search for 16,384 accelerators: a dense model as published, and mixtures of experts.

The mixture with many experts, long sequences and a batch with many divisors has the most candidate layouts.
tests/forecast/training/test_layout_search.py asserts the results. ParallelCluster has nothing comparable.
"""

import statistics
import sys
import time

from table import Row, print_table

from corral.catalog.accelerators.accelerators import find_accelerator
from corral.catalog.accelerators.transformer_models import models
from corral.forecast.training.interconnect import links_of
from corral.forecast.training.job import Precision
from corral.forecast.training.layout_search import choose
from corral.forecast.training.search_space import OpenJob

NODES, ROUNDS = 2048, 5  # of eight H100
MAX_S = 2.0  # a wait that nobody notices
CASES = (
    ("llama3-405b", 8192, 2048),
    ("mixtral-8x22b", 32768, 15360),
    ("qwen3-235b-a22b", 32768, 15360),
)  # model, tokens of a sequence, sequences of a step


def main() -> int:
    """Measure and print the table."""
    print_table(rows())
    return 0


def rows(rounds: int = ROUNDS) -> list[Row]:
    """The medians, a row for each model."""
    return [_row(*case, rounds) for case in CASES]


def _row(model: str, seq_len: int, batch: int, rounds: int) -> Row:
    job = OpenJob(
        shape=models()[model],
        machine=links_of(find_accelerator("H100-80"), None),
        nodes=NODES,
        per_node=8,
        host_gib=230.0,
        seq_len=seq_len,
        global_batch=batch,
        precision=Precision.BF16,
    )
    times = [_seconds(job) for _ in range(rounds)]
    print(f"  {model}: {', '.join(f'{seconds:.2f}' for seconds in times)} s", file=sys.stderr)
    what = f"layout of {model} for {job.accelerators:,} accelerators"
    return Row(what=what, unit="s", ours=statistics.median(times), limit=MAX_S)


def _seconds(job: OpenJob) -> float:
    start = time.perf_counter()
    if choose(job).best is None:
        raise SystemExit(f"{job.shape.name}: no layout fits")
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
