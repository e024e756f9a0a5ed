"""Requests of Slurm's programs: complete, in order, with Slurm's data on jobs, and without delay for slurmctld."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from corral.agent.autoscaler import resume_program as note_program
from corral.agent.autoscaler.request_queue import pending_requests, without_suspended
from corral.agent.autoscaler.resume_program import wake, write_request
from corral.agent.cluster.models import PowerRequest, WaitingJob

JOB_OF_22_05 = {"jobs": [{"job_id": 1, "nodes": "train-[1-2]"}], "all_nodes": "train-[1-2]"}
JOB_OF_23_02 = {
    "all_nodes_resume": "train-[2-3]",
    "jobs": [
        {
            "extra": None,
            "features": None,
            "job_id": 7,
            "nodes_alloc": "train-[1-3]",
            "nodes_resume": "train-[2-3]",
            "oversubscribe": "OK",
            "partition": "train",
            "reservation": None,
        }
    ],
}


def jobs_of(tmp_path: Path, nodes: str, slurm: Any) -> Sequence[Sequence[str]]:
    """The jobs of the request that is left for these nodes where Slurm's file says this."""
    (tmp_path / "slurm").write_text(slurm if isinstance(slurm, str) else json.dumps(slurm))
    write_request("resume", nodes, {"SLURM_RESUME_FILE": str(tmp_path / "slurm")}, str(tmp_path))
    (request,) = pending_requests(tmp_path)
    return tuple(job.nodes for job in request.jobs)


def test_a_request_has_its_verb_and_nodes(tmp_path: Path) -> None:
    file = write_request("suspend", "train-[1-2,4]", {}, str(tmp_path))
    (request,) = pending_requests(tmp_path)
    assert (str(tmp_path / f"{request.key}.json"), request.verb, request.nodes) == (
        file,
        "suspend",
        ("train-1", "train-2", "train-4"),
    )


@pytest.mark.parametrize(
    ("nodes", "slurm", "jobs"),
    [
        ("train-[1-2]", JOB_OF_22_05, (("train-1", "train-2"),)),
        ("train-[2-3]", JOB_OF_23_02, (("train-2", "train-3"),)),
        ("train-[1-3]", JOB_OF_22_05, (("train-1", "train-2"),)),  # the third is an administrator's launch
        ("train-2", JOB_OF_22_05, (("train-2",),)),  # the first is up
        ("cpu-1", JOB_OF_22_05, ()),
        ("train-[1-2]", {"jobs": []}, ()),
        ("train-[1-2]", {}, ()),
    ],
)
def test_the_nodes_that_each_job_waits_for(
    tmp_path: Path, nodes: str, slurm: Mapping[str, Any], jobs: Sequence[Sequence[str]]
) -> None:
    assert jobs_of(tmp_path, nodes, slurm) == jobs


def test_allocated_nodes_are_separate_from_those_that_a_job_waits_for(tmp_path: Path) -> None:
    jobs_of(tmp_path, "train-[2-3]", JOB_OF_23_02)
    assert [job.allocated_nodes for request in pending_requests(tmp_path) for job in request.jobs] == [("train-1",)]


def test_a_node_that_two_jobs_share_is_with_both(tmp_path: Path) -> None:
    slurm = {"jobs": [{"job_id": 1, "nodes_resume": "cpu-[1-2]"}, {"job_id": 2, "nodes_resume": "cpu-2,train-1"}]}
    assert jobs_of(tmp_path, "cpu-[1-2],train-1", slurm) == (("cpu-1", "cpu-2"), ("cpu-2", "train-1"))


@pytest.mark.parametrize("broken", ["{", "[]", '{"jobs": null}', '{"jobs": [1]}', '{"jobs": [{"nodes": "login01"}]}'])
def test_nodes_are_requested_even_if_slurms_file_is_invalid(tmp_path: Path, broken: str) -> None:
    jobs_of(tmp_path, "train-[1-2]", broken)
    assert [(request.nodes, request.jobs) for request in pending_requests(tmp_path)] == [(("train-1", "train-2"), ())]


def test_nodes_are_requested_even_if_slurms_file_is_gone(tmp_path: Path) -> None:
    write_request("resume", "train-[1-2]", {"SLURM_RESUME_FILE": str(tmp_path / "gone")}, str(tmp_path))
    assert [(request.nodes, request.jobs) for request in pending_requests(tmp_path)] == [(("train-1", "train-2"), ())]


def test_a_request_keeps_the_content_of_slurms_deleted_file(tmp_path: Path) -> None:
    (tmp_path / "slurm").write_text(json.dumps(JOB_OF_22_05))
    write_request("resume", "train-[1-3]", {"SLURM_RESUME_FILE": str(tmp_path / "slurm")}, str(tmp_path))
    (tmp_path / "slurm").unlink()
    assert [[job.nodes for job in request.jobs] for request in pending_requests(tmp_path)] == [[("train-1", "train-2")]]


def test_requests_are_read_in_the_order_of_writing(tmp_path: Path) -> None:
    for verb in ("resume", "suspend", "resume", "resume-failed"):
        write_request(verb, "train-1", {}, str(tmp_path))
    assert [request.verb for request in pending_requests(tmp_path)] == ["resume", "suspend", "resume", "resume-failed"]


def test_a_request_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "1-1.new").write_text('{"verb": "resume", "nodes": "train-1", "slurm": {}}')
    assert list(pending_requests(tmp_path)) == []


def test_writing_a_request_leaves_no_other_file(tmp_path: Path) -> None:
    file = write_request("resume", "train-1", {}, str(tmp_path))
    assert [str(left) for left in tmp_path.iterdir()] == [file]


BROKEN = [
    "",
    "[]",
    '{"verb": "resume", "slurm": {}}',
    '{"verb": "reboot", "nodes": "train-1", "slurm": {}}',
    '{"verb": "resume", "nodes": ["train-1"], "slurm": {}}',
    '{"verb": "resume", "nodes": "login01", "slurm": {}}',
]


@pytest.mark.parametrize("text", BROKEN)
def test_an_invalid_request_does_not_block_the_next_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "1-1.json").write_text(text)
    write_request("resume", "train-1", {}, str(tmp_path))
    assert [request.nodes for request in pending_requests(tmp_path)] == [("train-1",)]


@pytest.mark.parametrize("text", BROKEN)
def test_an_invalid_request_is_renamed_and_logged_once(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "1-1.json").write_text(text)
    with caplog.at_level(logging.ERROR):
        list(pending_requests(tmp_path)), list(pending_requests(tmp_path))
    assert ([file.name for file in tmp_path.iterdir()], len(caplog.messages)) == (["1-1.broken"], 1)


def test_a_wake_up_is_received(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wake_socket:
        wake_socket.bind(str(tmp_path / "wake_socket"))
        wake(str(tmp_path / "wake_socket"))
        assert wake_socket.recv(1) == b"!"


def test_a_wake_up_without_a_socket_is_no_error(tmp_path: Path) -> None:
    wake(str(tmp_path / "wake_socket"))


def test_a_wake_up_of_a_closed_socket_is_no_error(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wake_socket:
        wake_socket.bind(str(tmp_path / "wake_socket"))
    wake(str(tmp_path / "wake_socket"))


def test_slurmctld_does_not_wait_for_an_autoscaler_that_is_busy(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wake_socket:
        wake_socket.bind(str(tmp_path / "wake_socket"))
        for _ in range(2000):  # more than the kernel keeps for a socket
            wake(str(tmp_path / "wake_socket"))
        assert wake_socket.recv(1) == b"!"


def program(verb: str, nodes: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """slurmctld's program, as it is started on a head whose spool and wake_socket are in the directory."""
    text = Path(note_program.__file__).read_text().replace(note_program.SPOOL, str(directory))
    (directory.parent / "note.py").write_text(
        text.replace(note_program.WAKE_SOCKET, str(directory.parent / "wake_socket"))
    )
    line = [sys.executable, "-I", "-S", str(directory.parent / "note.py"), verb, nodes]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def test_slurmctlds_program_needs_nothing_of_corral_and_no_packages(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "slurm").write_text(json.dumps(JOB_OF_22_05))
    program("resume", "train-[1-2]", tmp_path / "notes", SLURM_RESUME_FILE=str(tmp_path / "slurm"))
    assert [
        (request.verb, [job.nodes for job in request.jobs]) for request in pending_requests(tmp_path / "notes")
    ] == [("resume", [("train-1", "train-2")])]


def test_slurmctlds_program_prints_a_line_if_it_cannot_write_a_request(tmp_path: Path) -> None:
    done = program("suspend", "train-1", tmp_path / "notes")
    assert (done.returncode, done.stderr.count("\n"), "No such file" in done.stderr) == (1, 1, True)


def test_nodes_are_requested_even_if_slurms_file_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "slurm").write_bytes(b'{"jobs": "\xff"}')
    write_request("resume", "train-1", {"SLURM_RESUME_FILE": str(tmp_path / "slurm")}, str(tmp_path))
    assert [request.nodes for request in pending_requests(tmp_path)] == [("train-1",)]


def directory_in(file: Path) -> None:
    file.mkdir()


def link_to_a_request(file: Path) -> None:
    other = file.parent.parent / "other"
    other.write_text('{"verb": "resume", "nodes": "train-9", "slurm": {}}')
    file.symlink_to(other)


def socket_in(file: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(file))


@pytest.mark.parametrize("make", [directory_in, os.mkfifo, link_to_a_request, socket_in])
def test_a_request_that_is_not_a_file_is_renamed_and_the_next_is_read(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    (tmp_path / "spool").mkdir()
    make(tmp_path / "spool/1-1.json")
    write_request("resume", "train-1", {}, str(tmp_path / "spool"))
    found = [request.nodes for request in pending_requests(tmp_path / "spool")]
    assert (found, (tmp_path / "spool/1-1.broken").is_symlink() or (tmp_path / "spool/1-1.broken").exists()) == (
        [("train-1",)],
        True,
    )


def test_a_request_that_cannot_be_renamed_does_not_block_the_next(tmp_path: Path) -> None:
    (tmp_path / "1-1.json").mkdir()
    (tmp_path / "1-1.broken").write_text("an earlier one")
    write_request("resume", "train-1", {}, str(tmp_path))
    assert [request.nodes for request in pending_requests(tmp_path)] == [("train-1",)]


def test_a_resume_drops_the_nodes_that_were_suspended_after_it() -> None:
    job = WaitingJob(job_id=1, nodes=("cpu-1", "cpu-2"), allocated_nodes=())
    first = PowerRequest(key="1-1", verb="resume", nodes=("cpu-1", "cpu-2"), requested_at=1.0, jobs=(job,))
    suspend = PowerRequest(key="2-1", verb="suspend", nodes=("cpu-1",), requested_at=2.0)
    again = PowerRequest(key="3-1", verb="resume", nodes=("cpu-1",), requested_at=3.0)
    left = without_suspended((first, suspend, again))
    assert [(one.key, one.nodes, [job.nodes for job in one.jobs]) for one in left] == [
        ("1-1", ("cpu-2",), [("cpu-2",)]),
        ("2-1", ("cpu-1",), []),
        ("3-1", ("cpu-1",), []),
    ]
