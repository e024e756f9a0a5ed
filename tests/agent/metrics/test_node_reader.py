"""The head reads the nodes of a job: real connections to nodes that answer, hang, or answer anything else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

import pytest

from agent.event_loops import awaited, serving
from corral.agent.job_evidence.slurm_record import parse_gpu_indices
from corral.agent.local_http import LocalServer, listen
from corral.agent.metrics.node_exporter import TokenResponder
from corral.agent.metrics.node_reader import read_job_nodes, read_nodes
from corral.agent.metrics.node_samples import SHOWN_GPUS, joined_samples
from corral.model.job_evidence import GpuSamples, JobNodes, JobRecord, NodeSamples
from corral.model.serialization import to_line

TOKEN, PATH = "0f" * 32, "/history?seconds=600"
GPU = GpuSamples(
    node="train-1",
    gpu=0,
    samples=20,
    utilization=0.98,
    throttled_share=0.0,
    reason="",
    clock_mhz=1400.0,
    temperature_c=60.0,
)
ANSWER = NodeSamples(gpus=(GPU,), efa_sent_bytes=4000, efa_seconds=570.0)
ADDRESS = "127.0.0.3"


@contextmanager
def node(text: str, token: str = TOKEN) -> Iterator[int]:
    """A block during which a node's metrics answer with this; yields their port."""
    respond = TokenResponder(str, lambda _: text, token)
    with listen(0, ADDRESS) as listener, serving(LocalServer(respond, listener)):
        yield listener.getsockname()[1]


@contextmanager
def raw(*pieces: bytes, pause_s: float = 0.0) -> Iterator[int]:
    """A block during which whoever connects is sent these bytes, again and again if they pause."""
    is_over = threading.Event()
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((ADDRESS, 0)))

        def serve() -> None:
            connection = listener.accept()[0]
            with connection, suppress(OSError):  # who reads it does not wait for its end
                for piece in pieces:
                    connection.sendall(piece)
                while pause_s and not is_over.wait(pause_s):
                    connection.sendall(b"x")

        thread = threading.Thread(target=serve)
        thread.start()
        stack.callback(thread.join)
        stack.callback(is_over.set)
        yield listener.getsockname()[1]


def read(port: int, address: str = ADDRESS, timeout_s: float = 20.0) -> NodeSamples | None:
    return awaited(read_nodes({"train-1": address}, PATH, TOKEN, port, timeout_s))["train-1"]


def test_a_nodes_answer_is_read() -> None:
    with node(to_line(ANSWER)) as port:
        assert read(port) == ANSWER


def test_a_node_of_another_cluster_answers_nothing() -> None:
    with node(to_line(ANSWER), token="1f" * 32) as port:
        assert read(port) is None


def test_a_node_where_nothing_listens_answers_nothing() -> None:
    with socket.socket() as free:
        free.bind((ADDRESS, 0))
        assert read(free.getsockname()[1]) is None


def test_a_node_without_an_address_answers_nothing() -> None:
    assert read(252, address="train-1") is None


@pytest.mark.parametrize("pieces", [(), (b"HTTP/1.0 200 OK\r\n\r\n{",)])
def test_a_node_that_answers_slowly_costs_its_time_and_no_more(pieces: tuple[bytes, ...]) -> None:
    with raw(*pieces, pause_s=0.05) as port:
        begun = time.monotonic()
        assert read(port, timeout_s=0.5) is None
        assert time.monotonic() - begun < 10


def impossible(**changes: object) -> str:
    return to_line(replace(ANSWER, gpus=(replace(GPU, **changes),)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("[]", id="another shape"),
        pytest.param("[" * 5000, id="nested without end"),
        pytest.param(to_line(replace(ANSWER, gpus=(GPU,) * 65)), id="more GPUs than a machine has"),
        pytest.param(impossible(utilization=float("nan")), id="not a number"),
        pytest.param(impossible(clock_mhz=float("inf")), id="infinite"),
        pytest.param(impossible(samples=-1), id="negative"),
        pytest.param(impossible(samples=10**400), id="larger than a float"),
        pytest.param(impossible(reason="\x1b[2J"), id="an unknown reason"),
        pytest.param(to_line(ANSWER) + " " * 70_000, id="too long"),
    ],
)
def test_what_no_node_measures_is_no_answer(text: str) -> None:
    with node(text) as port:
        assert read(port) is None


def test_nodes_are_read_at_once() -> None:
    with raw(pause_s=0.05) as slow:
        begun = time.monotonic()
        addresses = {f"train-{number}": ADDRESS for number in range(200)}
        found = awaited(read_nodes(addresses, PATH, TOKEN, slow, 1.0))
    assert (len(found), time.monotonic() - begun < 15) == (200, True)


def joined(answers: Mapping[str, NodeSamples | None], gpus: Mapping[str, frozenset[int]] | None = None) -> JobNodes:
    return joined_samples(answers, dict.fromkeys(answers, frozenset(range(8))) if gpus is None else gpus, 1000.0)


def test_a_node_speaks_for_itself_alone() -> None:
    assert [one.node for one in joined({"train-2": ANSWER}).gpus] == ["train-2"]


def test_only_the_jobs_own_gpus_count() -> None:
    both = replace(ANSWER, gpus=(GPU, replace(GPU, gpu=1, utilization=0.0)))
    found = joined({"train-1": both}, {"train-1": frozenset({0})})
    assert (found.gpu_count, found.utilization) == (1, 0.98)


def test_of_many_gpus_those_come_first_that_are_held_back_and_that_work_least() -> None:
    hot = replace(GPU, gpu=6, reason="hw_thermal_slowdown", throttled_share=0.4)
    idle, capped = replace(GPU, gpu=7, utilization=0.1), replace(GPU, gpu=5, reason="sw_power_cap", throttled_share=1.0)
    answers = {f"train-{number}": replace(ANSWER, gpus=(GPU, capped, hot, idle)) for number in range(100)}
    found = joined(answers)
    assert (found.gpu_count, len(found.gpus), {one.gpu for one in found.gpus}) == (400, SHOWN_GPUS, {6})


def test_a_node_whose_efa_sent_nothing_is_named() -> None:
    found = joined({"train-1": ANSWER, "train-2": replace(ANSWER, efa_sent_bytes=0)})
    assert (found.efa_nodes, found.silent_nodes, found.efa_seconds) == (2, ("train-2",), 570.0)


def test_half_a_minute_proves_nothing_about_efa() -> None:
    found = joined({"train-1": replace(ANSWER, efa_sent_bytes=0, efa_seconds=30.0)})
    assert (found.efa_nodes, found.silent_nodes) == (0, ())


def test_nodes_that_do_not_answer_are_named() -> None:
    assert joined({"train-2": None, "train-1": ANSWER}).unread_nodes == ("train-2",)


RECORD = JobRecord(
    job_id="17",
    user="ada",
    name="llama",
    queue="train",
    state="completed",
    exit_code="0:0",
    nodes="train-1",
    node_count=1,
    gpus=8,
    runs=1,
    started=1000,
    ended=2000,
)


def test_nodes_of_a_job_that_has_ended_are_not_read() -> None:
    assert read_job_nodes(RECORD, ()).problem == "the job does not run now"


# As `scontrol show job --details` of Slurm 22.05 prints it.
DETAILS = """JobId=17 JobName=llama
   JobState=RUNNING Reason=None Dependency=(null)
   NodeList=train-[1-3]
   JOB_GRES=gpu:h100:10
     Nodes=train-[1-2] CPU_IDs=0-95 Mem=0 GRES=gpu:h100:4(IDX:0-2,7)
     Nodes=train-3 CPU_IDs=0-7 Mem=1024 GRES=gpu:h100:2(IDX:4-5)
   MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0
"""


NODES = frozenset({"train-1", "train-2", "train-3"})


def test_the_gpus_of_a_job_are_those_that_slurm_gave_it() -> None:
    assert parse_gpu_indices(DETAILS, NODES) == {
        "train-1": frozenset({0, 1, 2, 7}),
        "train-2": frozenset({0, 1, 2, 7}),
        "train-3": frozenset({4, 5}),
    }


@pytest.mark.parametrize(
    "line",
    [
        "     Nodes=cpu-1 CPU_IDs=0-7 Mem=1024 GRES=",
        "     Nodes=train-1 CPU_IDs=0-7 Mem=0 GRES=tpu:8(IDX:0-7)",
        "   JobName=x Nodes=train-1 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)",
        "     Nodes=train-1 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0-)",
    ],
)
def test_other_lines_name_no_gpus(line: str) -> None:
    assert parse_gpu_indices(line, NODES) == {}


def test_a_users_text_names_no_other_nodes_and_begins_no_line() -> None:
    many = ",".join(f"a{n}-[0-99999]" for n in range(9))
    assert parse_gpu_indices(f"     Nodes={many} CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)", NODES) == {}
    assert parse_gpu_indices("   Comment=x\f     Nodes=train-1 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)", NODES) == {}


def test_an_index_without_end_is_bounded() -> None:
    found = parse_gpu_indices("     Nodes=train-1 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0-999)", NODES)
    assert len(found["train-1"]) == 65
