"""Notes of Slurm's programs: whole, in order, with what Slurm says of the jobs, and never in slurmctld's way."""

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

from corral.agent import note as note_program
from corral.agent.note import leave_note, ring
from corral.agent.spool import notes

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
    """The jobs of the note that is left for these nodes where Slurm's file says this."""
    (tmp_path / "slurm").write_text(slurm if isinstance(slurm, str) else json.dumps(slurm))
    leave_note("resume", nodes, {"SLURM_RESUME_FILE": str(tmp_path / "slurm")}, str(tmp_path))
    (note,) = notes(tmp_path)
    return tuple(job.nodes for job in note.jobs)


def test_a_note_says_what_is_wanted_of_which_nodes(tmp_path: Path) -> None:
    file = leave_note("suspend", "train-[1-2,4]", {}, str(tmp_path))
    (note,) = notes(tmp_path)
    assert (str(tmp_path / f"{note.key}.json"), note.verb, note.nodes) == (
        file,
        "suspend",
        ("train-1", "train-2", "train-4"),
    )


@pytest.mark.parametrize(
    ("nodes", "slurm", "jobs"),
    [
        ("train-[1-2]", JOB_OF_22_05, (("train-1", "train-2"),)),
        ("train-[2-3]", JOB_OF_23_02, (("train-2", "train-3"),)),
        ("train-[1-3]", JOB_OF_22_05, (("train-1", "train-2"),)),  # the third is an administrator's wish
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


def test_the_nodes_that_a_job_has_already_are_beside_those_that_it_waits_for(tmp_path: Path) -> None:
    jobs_of(tmp_path, "train-[2-3]", JOB_OF_23_02)
    assert [job.beside for note in notes(tmp_path) for job in note.jobs] == [("train-1",)]


def test_a_node_that_two_jobs_share_is_with_both(tmp_path: Path) -> None:
    slurm = {"jobs": [{"job_id": 1, "nodes_resume": "cpu-[1-2]"}, {"job_id": 2, "nodes_resume": "cpu-2,train-1"}]}
    assert jobs_of(tmp_path, "cpu-[1-2],train-1", slurm) == (("cpu-1", "cpu-2"), ("cpu-2", "train-1"))


@pytest.mark.parametrize("broken", ["{", "[]", '{"jobs": null}', '{"jobs": [1]}', '{"jobs": [{"nodes": "login01"}]}'])
def test_nodes_are_wanted_also_where_slurms_file_is_not_understood(tmp_path: Path, broken: str) -> None:
    jobs_of(tmp_path, "train-[1-2]", broken)
    assert [(note.nodes, note.jobs) for note in notes(tmp_path)] == [(("train-1", "train-2"), ())]


def test_nodes_are_wanted_also_where_slurms_file_is_gone(tmp_path: Path) -> None:
    leave_note("resume", "train-[1-2]", {"SLURM_RESUME_FILE": str(tmp_path / "gone")}, str(tmp_path))
    assert [(note.nodes, note.jobs) for note in notes(tmp_path)] == [(("train-1", "train-2"), ())]


def test_a_note_keeps_what_slurms_file_said_when_the_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "slurm").write_text(json.dumps(JOB_OF_22_05))
    leave_note("resume", "train-[1-3]", {"SLURM_RESUME_FILE": str(tmp_path / "slurm")}, str(tmp_path))
    (tmp_path / "slurm").unlink()
    assert [[job.nodes for job in note.jobs] for note in notes(tmp_path)] == [[("train-1", "train-2")]]


def test_notes_come_in_the_order_in_which_they_were_left(tmp_path: Path) -> None:
    for verb in ("resume", "suspend", "resume", "resume-failed"):
        leave_note(verb, "train-1", {}, str(tmp_path))
    assert [note.verb for note in notes(tmp_path)] == ["resume", "suspend", "resume", "resume-failed"]


def test_a_note_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "1-1.new").write_text('{"verb": "resume", "nodes": "train-1", "slurm": {}}')
    assert list(notes(tmp_path)) == []


def test_leaving_a_note_leaves_nothing_else(tmp_path: Path) -> None:
    file = leave_note("resume", "train-1", {}, str(tmp_path))
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
def test_a_broken_note_does_not_keep_the_next_one_from_being_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "1-1.json").write_text(text)
    leave_note("resume", "train-1", {}, str(tmp_path))
    assert [note.nodes for note in notes(tmp_path)] == [("train-1",)]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_note_is_set_aside_and_told_of_once(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "1-1.json").write_text(text)
    with caplog.at_level(logging.ERROR):
        list(notes(tmp_path)), list(notes(tmp_path))
    assert ([file.name for file in tmp_path.iterdir()], len(caplog.messages)) == (["1-1.broken"], 1)


def test_a_ring_is_heard(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.bind(str(tmp_path / "bell"))
        ring(str(tmp_path / "bell"))
        assert bell.recv(1) == b"!"


def test_a_ring_without_a_bell_is_no_error(tmp_path: Path) -> None:
    ring(str(tmp_path / "bell"))


def test_a_ring_at_a_bell_that_nobody_hears_any_more_is_no_error(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.bind(str(tmp_path / "bell"))
    ring(str(tmp_path / "bell"))


def test_slurmctld_does_not_wait_for_a_keeper_that_is_busy(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.bind(str(tmp_path / "bell"))
        for _ in range(2000):  # more than the kernel keeps for a socket
            ring(str(tmp_path / "bell"))
        assert bell.recv(1) == b"!"


def program(verb: str, nodes: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """slurmctld's program, as it is started on a head whose spool and bell are in the directory."""
    text = Path(note_program.__file__).read_text().replace(note_program.SPOOL, str(directory))
    (directory.parent / "note.py").write_text(text.replace(note_program.BELL, str(directory.parent / "bell")))
    line = [sys.executable, "-I", "-S", str(directory.parent / "note.py"), verb, nodes]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def test_slurmctlds_program_needs_nothing_of_corral_and_no_packages(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "slurm").write_text(json.dumps(JOB_OF_22_05))
    program("resume", "train-[1-2]", tmp_path / "notes", SLURM_RESUME_FILE=str(tmp_path / "slurm"))
    assert [(note.verb, [job.nodes for job in note.jobs]) for note in notes(tmp_path / "notes")] == [
        ("resume", [("train-1", "train-2")])
    ]


def test_slurmctlds_program_says_in_a_line_why_there_is_no_note(tmp_path: Path) -> None:
    done = program("suspend", "train-1", tmp_path / "notes")
    assert (done.returncode, done.stderr.count("\n"), "No such file" in done.stderr) == (1, 1, True)


def test_nodes_are_wanted_also_where_slurms_file_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "slurm").write_bytes(b'{"jobs": "\xff"}')
    leave_note("resume", "train-1", {"SLURM_RESUME_FILE": str(tmp_path / "slurm")}, str(tmp_path))
    assert [note.nodes for note in notes(tmp_path)] == [("train-1",)]


def directory_in(file: Path) -> None:
    file.mkdir()


def link_to_a_note(file: Path) -> None:
    other = file.parent.parent / "other"
    other.write_text('{"verb": "resume", "nodes": "train-9", "slurm": {}}')
    file.symlink_to(other)


def socket_in(file: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(file))


@pytest.mark.parametrize("make", [directory_in, os.mkfifo, link_to_a_note, socket_in])
def test_what_is_no_file_is_set_aside_and_the_next_note_is_read(tmp_path: Path, make: Callable[[Path], object]) -> None:
    (tmp_path / "spool").mkdir()
    make(tmp_path / "spool/1-1.json")
    leave_note("resume", "train-1", {}, str(tmp_path / "spool"))
    found = [note.nodes for note in notes(tmp_path / "spool")]
    assert (found, (tmp_path / "spool/1-1.broken").is_symlink() or (tmp_path / "spool/1-1.broken").exists()) == (
        [("train-1",)],
        True,
    )


def test_what_cannot_be_set_aside_does_not_keep_the_next_note_from_being_read(tmp_path: Path) -> None:
    (tmp_path / "1-1.json").mkdir()
    (tmp_path / "1-1.broken").write_text("an earlier one")
    leave_note("resume", "train-1", {}, str(tmp_path))
    assert [note.nodes for note in notes(tmp_path)] == [("train-1",)]
