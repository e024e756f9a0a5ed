"""The head's curves of a job: what Prometheus is queried for, and a real one with series of a run, all synthetic."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.event_loops import apart
from agent.test_prometheus_daemon import PLAN, Running, free_port, running_prometheus, started
from corral.agent.job_evidence.slurm_record import SlurmJob
from corral.agent.metrics.job_curves import listeners, planned_queries, points, read_curves
from corral.model.job_evidence import JobCurves, JobRecord
from corral.model.serialization import to_line

START = 1_795_000_020  # a multiple of 30
MINUTES = 20
NOW = START + 60 * MINUTES
HOSTILE = '"} or vector(1) #'
RECORD = JobRecord(
    job_id="17",
    user=HOSTILE,
    name=HOSTILE,
    queue="train",
    state="running",
    exit_code="0:0",
    nodes="train-[1-2]",
    node_count=2,
    gpus=4,
    runs=1,
    started=START,
    ended=None,
)


def slurm_job(number: int = 17, **changes: Any) -> SlurmJob:
    return SlurmJob(record=replace(RECORD, **changes), uid=2000, number=number, directory=Path("/home/ada"))


def planned(ran_s: int = 60 * MINUTES, own: Sequence[int] = (), **changes: Any) -> Any:
    return planned_queries(slurm_job(**changes), own, START + ran_s)


def test_a_job_is_its_number_and_nothing_that_its_user_can_choose() -> None:
    own = 'node=~"train-1|train-2",job_id="17"'
    assert planned(own=(7, 0))[1] == {
        "tokens_per_s": f"avg(avg_over_time(corral_job_tokens_per_second{{{own}}}[120s])>0)",
        "communication_share": f"min(avg_over_time(corral_job_communication_ratio{{{own}}}[120s]))",
        "efa_sent_bytes_per_s": 'avg(sum by(node)(rate(corral_efa_sent_bytes_total{node=~"train-1|train-2"}[120s])))',
        "gpu_utilization": (
            'avg(avg_over_time(corral_gpu_utilization_ratio{node=~"train-1|train-2",gpu=~"0|7"}[120s]))'
            ' and count(avg_over_time(corral_gpu_utilization_ratio{node=~"train-1|train-2",gpu=~"0|7"}[120s]))<=4'
        ),
    }


@pytest.mark.parametrize("nodes", ['train-1"} or up{x="', "train-[1", "TRAIN-1"])
def test_what_is_no_name_of_a_node_is_in_no_query(nodes: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)train"):
        planned(nodes=nodes)


@pytest.mark.parametrize(
    ("ran_s", "every_s", "over_s", "count"),
    [
        (120, 30, 120, 1),
        (1200, 30, 120, 37),
        (3000, 30, 120, 97),
        (3001, 60, 120, 49),
        (86_400, 870, 300, 99),
        (15 * 86_400, 12_960, 300, 100),
    ],
)
def test_a_run_has_at_most_a_hundred_points_that_end_with_it(ran_s: int, every_s: int, over_s: int, count: int) -> None:
    found, _ = planned(ran_s)
    times = range(found.first, found.last + 1, found.every_s)
    assert (found.every_s, found.over_s, len(times), found.last) == (every_s, over_s, count, START + ran_s)
    assert found.first - found.over_s >= START


@pytest.mark.parametrize("changes", [{"ended": START + 119}, {"started": None}, {"nodes": ""}])
def test_of_a_run_without_two_minutes_on_nodes_nothing_is_queried(changes: Any) -> None:
    assert planned(119, **changes) == (JobCurves(is_kept=True), {})


def test_of_a_thousand_nodes_every_sixteenth_is_read() -> None:
    found, queries = planned(nodes="train-[1-1000]", node_count=1000)
    assert (found.nodes, "train-1|train-17|" in queries["tokens_per_s"]) == (63, True)


def test_a_job_without_gpus_has_no_curve_of_them() -> None:
    assert "gpu_utilization" not in planned(gpus=0)[1]


PLANNED = JobCurves(is_kept=True, first=1000, last=1090, every_s=30, over_s=120, nodes=2)


def answer(*values: Any) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [{"values": [*values]}]}})


def test_what_is_missing_in_an_answer_is_no_value() -> None:
    assert points(answer([1030, "0.123456"], [1090, "2"]), PLANNED) == (None, 0.1235, None, 2.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 5000,
        '{"data": {}}',
        answer([1030]),
        answer([1030, None]),
        answer([1030, "NaN"]),
        answer([1030, "+Inf"]),
        answer([1030, "-1"]),
        answer([1031, "1"]),
        answer([10**9, "1"]),
        answer([10**400, "1"]),
        json.dumps({"data": {"result": [{"values": []}, {"values": []}]}}),
    ],
)
def test_what_is_no_series_of_numbers_at_these_times_is_no_answer(text: str) -> None:
    with pytest.raises(ValueError):
        points(text, PLANNED)


def test_curves_take_a_tenth_of_an_answer_of_systems_manager() -> None:
    """24,000 characters, of gzip -9 in base64 (`plan.iam.head_documents`)."""
    chance = random.Random(1)
    made: Any = [tuple(float(f"{chance.uniform(0.1, 1):.4g}") for _ in range(100)) for _ in range(4)]
    curves = replace(
        PLANNED,
        tokens_per_s=made[0],
        communication_share=made[1],
        gpu_utilization=made[2],
        efa_sent_bytes_per_s=made[3],
    )
    assert len(base64.b64encode(gzip.compress(to_line(curves).encode(), 9))) < 2400


TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000   108        0 1 1
   1: 0100007F:2382 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 2 1
   2: 0100000A:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 3 1
"""


def test_who_listens_on_the_port_is_known_by_the_kernel() -> None:
    assert (listeners(TABLE, 9090), listeners(TABLE, 9091)) == ({108}, set())


def series() -> Iterator[str]:
    """Samples of twenty minutes without those of minutes 6 to 11, when nothing was scraped; before the run, GPUs idle.

    Jobs 17 and 18 share train-1: GPUs 0 and 1 of each node are those of 17. train-3 is another job's. From minute 15
    on, 17 makes no steps, and the driver of one EFA interface is loaded again.
    """
    for at in range(START - 600, START + 60 * MINUTES + 1, 30):
        minute = (at - START) / 60
        if 6 <= minute <= 11:
            continue
        works = 0.0 if minute < 0 else 0.8
        for node in ("train-1", "train-2", "train-3"):
            own = {"0": works, "1": works, "2": 0.1, "3": 0.1} if node != "train-3" else {"0": 1.0}
            for gpu, value in own.items():
                yield f'corral_gpu_utilization_ratio{{node="{node}",gpu="{gpu}"}} {value} {at}'
            for device in ("a", "b"):
                is_new = minute >= 15 and (node, device) == ("train-1", "a")
                sent = 10**9 * (at - START + 600 - (1500 if is_new else 0))
                yield f'corral_efa_sent_bytes_total{{node="{node}",device="{device}"}} {sent} {at}'
        if not 0 <= minute < 15:
            continue
        for job, user, node, rank, tokens in (
            ("17", "ada", "train-1", 0, 1000),
            ("17", "ada", "train-2", 1, 3000),
            ("18", "eve", "train-1", 0, 9),
        ):
            labels = f'node="{node}",job_id="{job}",user="{user}",rank="{rank}"'
            yield f"corral_job_tokens_per_second{{{labels}}} {tokens} {at}"
            yield f"corral_job_communication_ratio{{{labels}}} {0.1 + 0.2 * rank} {at}"


@contextmanager
def prometheus_with(root: Path, lines: Sequence[str]) -> Iterator[Running]:
    """A real Prometheus with a head's password and options, and these samples, which promtool makes blocks of."""
    started(root)
    directory, data = root / "etc/corral/prometheus", root / "lib/corral/prometheus"
    by_metric = sorted(lines, key=lambda line: line.partition("{")[0])  # each with its samples in the order of time
    (root / "samples").write_text("".join(f"{line}\n" for line in by_metric) + "# EOF\n")
    made = ("promtool", "tsdb", "create-blocks-from", "openmetrics", str(root / "samples"), str(data))
    subprocess.run(made, check=True, capture_output=True)
    (directory / "prometheus.yml").write_text("global: {}\n")
    kept = replace(PLAN.monitoring, retention_s=10**9)  # blocks of a run long ago would be deleted
    with running_prometheus(root, kept, free_port()) as running:
        yield running


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """The password of a head whose Prometheus has the series, and its port."""
    root = tmp_path_factory.mktemp("head")
    (root / "etc/munge").mkdir(parents=True)
    (root / "etc/munge/munge.key").write_bytes(b"k" * 128)
    with pytest.MonkeyPatch.context() as patch:  # the test machine's Prometheus may have no user
        patch.setattr("corral.agent.prometheus.PROMETHEUS_USER", "root")
        with prometheus_with(root, [*series()]) as running:
            yield root / "etc/corral/prometheus/password", running.port


Read = Callable[..., JobCurves]


@pytest.fixture
def read(head: tuple[Path, int]) -> Read:
    password, port = head

    def curves(own: Sequence[int] = (0, 1), number: int = 17, **changes: Any) -> JobCurves:
        return apart(read_curves, slurm_job(number, **changes), own, NOW, password, port)

    return curves


def at(values: Sequence[float | None], minute: float) -> float | None:
    """The value at this minute of the run; the first one is at its second."""
    return values[int(2 * minute) - 4]


def test_the_answer_is_complete(read: Read) -> None:
    found = read()
    assert (found.problem, found.nodes, len(found.gpu_utilization)) == ("", 2, 37)


def test_tokens_are_the_mean_of_the_jobs_own_processes(read: Read) -> None:
    found = read()
    assert at(found.tokens_per_s, 5) == 2000.0


def test_communication_is_that_of_the_process_that_waits_least(read: Read) -> None:
    found = read()
    assert at(found.communication_share, 5) == pytest.approx(0.1)


def test_gpus_are_those_that_the_job_has_on_its_nodes(read: Read) -> None:
    found = read()
    assert {value for value in found.gpu_utilization if value is not None} == {0.8}


def test_gpus_that_waited_for_the_job_do_not_count(read: Read) -> None:
    assert read().gpu_utilization[0] == 0.8


def test_gpus_of_neighbours_make_no_curve(read: Read) -> None:
    assert read(own=()).gpu_utilization == ()


def test_without_neighbours_all_gpus_are_the_jobs(read: Read) -> None:
    found = read(own=(), gpus=8)
    assert at(found.gpu_utilization, 5) == pytest.approx(0.45)


def test_efa_is_the_mean_of_the_nodes_and_a_driver_that_is_loaded_again_is_no_peak(read: Read) -> None:
    found = read()
    known = [value for value in found.efa_sent_bytes_per_s if value is not None]
    assert (at(found.efa_sent_bytes_per_s, 5), max(known)) == (2e9, 2e9)


def test_time_without_scrapes_is_a_gap(read: Read) -> None:
    found = read()
    gap = [minute / 2 for minute in range(4, 41) if at(found.gpu_utilization, minute / 2) is None]
    assert gap == [8.0, 8.5, 9.0, 9.5, 10.0, 10.5, 11.0]


def test_a_job_that_stands_still_has_gpus_and_no_tokens(read: Read) -> None:
    found = read()
    assert (found.tokens_per_s[-1], found.gpu_utilization[-1]) == (None, 0.8)


def test_after_the_end_of_a_run_nothing_is_read(read: Read) -> None:
    found = read(ended=START + 300, state="completed")
    assert (found.last, len(found.gpu_utilization)) == (START + 300, 7)


def test_a_job_that_nothing_is_known_of_has_no_curves_and_no_problem(read: Read) -> None:
    found = read(number=99, nodes="train-[8-9]")
    assert (found.problem, found.tokens_per_s, found.gpu_utilization, found.nodes) == ("", (), (), 2)


def test_a_wrong_password_is_named_as_what_prometheus_answers(head: tuple[Path, int], tmp_path: Path) -> None:
    (tmp_path / "password").write_text("guessed\n")
    found = apart(read_curves, slurm_job(), (), NOW, tmp_path / "password", head[1])
    assert found.problem == "Prometheus: it answered 'HTTP/1.0 401'"


def test_a_prometheus_that_does_not_run_is_named(head: tuple[Path, int]) -> None:
    found = apart(read_curves, slurm_job(), (), NOW, head[0], free_port())
    assert (found.is_kept, found.problem) == (True, "Prometheus: it does not run")


def test_a_silent_prometheus_costs_four_seconds(head: tuple[Path, int]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        found = apart(read_curves, slurm_job(), (), NOW, head[0], silent.getsockname()[1])
    assert (found.problem, time.monotonic() - begun < 10) == ("Prometheus: no answer within 4 s", True)


LISTENS = """
import socket
with socket.create_server(("127.0.0.1", 0)) as one:
    print(one.getsockname()[1], flush=True)
    one.settimeout(3)
    try:
        print(one.accept()[0].recv(4096))
    except TimeoutError:
        print("nobody came")
"""


def test_a_user_who_listens_instead_of_prometheus_gets_no_password(head: tuple[Path, int]) -> None:
    if os.geteuid():
        pytest.skip("only root starts a process of another user - run the tests as root")
    command = ["/usr/bin/python3", "-c", LISTENS]  # which every user may run
    with subprocess.Popen(command, user=65534, cwd="/", stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        port = int(user.stdout.readline())
        found = apart(read_curves, slurm_job(), (), NOW, head[0], port)
        heard = user.stdout.read()
    assert (found.problem, heard) == (f"Prometheus: somebody else listens on its port {port}", "nobody came\n")
