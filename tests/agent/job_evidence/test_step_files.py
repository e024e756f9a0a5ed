"""A job's directory, read by a process of its user: what is summed up, and what an attacker may leave there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.agent.job_evidence import step_files, user_reader
from corral.agent.job_evidence.output_lines import MOST_LINES, kept_lines
from corral.agent.job_evidence.step_files import read_page
from corral.agent.job_evidence.step_summary import read_rank
from corral.agent.job_evidence.user_reader import JobReadError, read_as_user
from corral.model.job_evidence import RankSteps, StepPage, StepPoint
from corral.model.serialization import to_line

NOBODY = 65534
HEADER = {"corral_step": 1, "at": 1.0, "rank": 0, "size": 16, "node": "train-1", "restarts": 2, "variables": {}}
STEP = {"at": 50.5, "step": 9, "steps": 1, "seconds": 2.0, "data_s": 0.2, "checkpoint_s": 0.0, "tokens": 4096}


@pytest.fixture
def system_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of machines, which every user may run."""
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A directory that other users may enter; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def text(*records: Any) -> str:
    return "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records)


def steps(*records: Any) -> RankSteps:
    return read_rank(0, text(HEADER, *records)).steps


def job_directory(tmp_path: Path, ranks: int = 1) -> Path:
    directory = tmp_path / "steps"
    directory.mkdir()
    (tmp_path / "job.out").write_text("a\nnode-1:1:2 [0] NCCL INFO Using network Libfabric\n")
    (directory / "output").write_text(f"{tmp_path / 'job.out'}\n")
    for rank in range(ranks):
        (directory / f"rank-{rank:05}.jsonl").write_text(text(HEADER, STEP))
    return directory


def test_a_process_is_closed_until_it_begins_anew() -> None:
    closed = (STEP, {"closed": 60.0})
    found = [steps(STEP), steps(*closed), steps(*closed, {**HEADER, "at": 70.0}, STEP)]
    assert [one.is_closed for one in found] == [False, True, False]


def test_steps_are_summed_up() -> None:
    exchanged = {**STEP, "communication_s": 0.4, "loss": 2.5, "write_s": 0.01, "memory_peak": 7, "memory_total": 8}
    assert steps({**exchanged, "checkpoint_s": 4.0}, {**exchanged, "step": 10}) == RankSteps(
        rank=0,
        node="train-1",
        size=16,
        restarts=2,
        lines=2,
        steps=2,
        last_step=10,
        last_at=50,
        seconds=4.0,
        step_s=2.0,
        slow_step_s=2.0,
        own_s=1.4,
        data_share=0.1,
        communication_share=0.2,
        checkpoint_share=0.5,
        checkpoints=1,
        checkpoint_s=4.0,
        tokens_per_s=2048.0,
        loss=2.5,
        write_s=0.01,
        memory_peak=7,
        memory_total=8,
    )


def test_a_line_of_several_steps_counts_as_so_many() -> None:
    found = steps({**STEP, "steps": 4})
    assert (found.steps, found.step_s) == (4, 0.5)


def test_communication_that_nobody_recorded_is_unknown_and_not_zero() -> None:
    assert steps(STEP).communication_share is None


def test_the_first_lines_of_a_process_do_not_count() -> None:
    found = steps(*({**STEP, "seconds": 500.0} for _ in range(3)), *(STEP for _ in range(9)))
    assert (found.lines, found.slow_step_s) == (9, 2.0)


def test_only_the_newest_run_counts() -> None:
    again = {**HEADER, "at": 2.0, "restarts": 3}
    found = steps({**STEP, "seconds": 9.0}, again, STEP)
    assert (found.restarts, found.step_s) == (3, 2.0)


def test_a_header_that_is_repeated_in_a_new_file_begins_no_new_run() -> None:
    assert steps(STEP, HEADER, STEP).lines == 2


def test_memory_retries_before_the_newest_lines_do_not_count() -> None:
    assert steps({**STEP, "memory_retries": 40}, {**STEP, "memory_retries": 43}).memory_retries == 3


@pytest.mark.parametrize(
    "line",
    [
        '{"at": 1, "step": 2, "st',
        "[1]",
        "null",
        "\x00\x1b[2J",
        "[" * 100_000,
        '{"steps": "many"}',
        '{"steps": 1e400}',
        '{"steps": NaN}',
        '{"steps": true}',
        '{"steps": -3}',
    ],
)
def test_a_line_that_is_no_record_is_left_out(line: str) -> None:
    assert steps(line, STEP) == steps(STEP)


@pytest.mark.parametrize("value", ["x", None, [], {}, 1e308, -5, float("nan"), float("inf"), 10**400])
@pytest.mark.parametrize("name", [*STEP, "communication_s", "loss", "write_s", "memory_peak", "memory_retries"])
def test_any_value_gives_finite_numbers(name: str, value: object) -> None:
    found = steps(STEP, {**STEP, name: value})
    numbers = [one for one in (getattr(found, field) for field in found.__slots__) if isinstance(one, float)]
    assert all(abs(one) < 2**64 for one in numbers)


def test_texts_are_made_printable() -> None:
    found = read_rank(0, text({**HEADER, "node": "a\x1b[31m", "variables": {"NCCL_\n": "b\r", "NCCL_X": 3}}))
    assert (found.steps.node, found.variables) == ("a\\x1b[31m", {"NCCL_\\n": "b\\r"})


def test_pages_follow_each_other(tmp_path: Path) -> None:
    directory = job_directory(tmp_path, ranks=5)
    pages = [read_page(directory, start, limit=2) for start in (0, 2, 4)]
    assert [([one.rank for one in page.ranks], page.next) for page in pages] == [([0, 1], 2), ([2, 3], 4), ([4], None)]


def test_the_output_comes_with_the_first_page(tmp_path: Path) -> None:
    directory = job_directory(tmp_path, ranks=2)
    assert [len(read_page(directory, start, limit=1).output) for start in (0, 1)] == [1, 0]


def test_a_young_file_is_read_with_the_one_before_it(tmp_path: Path) -> None:
    directory = job_directory(tmp_path)
    (directory / "rank-00000.jsonl.1").write_text(text(HEADER, STEP, STEP))
    assert read_page(directory).ranks[0].lines == 3


def test_links_pipes_and_directories_are_no_steps(tmp_path: Path) -> None:
    directory = job_directory(tmp_path)
    (directory / "rank-00001.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(directory / "rank-00002.jsonl")
    (directory / "rank-00003.jsonl").mkdir()
    (directory / "rank-00004.jsonl").symlink_to("/dev/zero")
    page = read_page(directory)
    assert ([one.rank for one in page.ranks], page.problem.count("rank-0000")) == ([0], 3)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/proc/self/mem", "relative", "/missing", ""])
def test_an_output_that_is_no_file_is_reported(tmp_path: Path, path: str) -> None:
    directory = job_directory(tmp_path)
    (directory / "output").write_text(path)
    assert read_page(directory).problem.startswith("no output: ")


def test_a_file_without_end_is_read_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = job_directory(tmp_path)
    with (directory / "rank-00000.jsonl").open("ab") as file:
        file.truncate(1 << 40)
    assert read_page(directory).ranks[0].lines == 1


def test_the_output_is_read_at_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = job_directory(tmp_path)
    first, last = "a:1:2 [0] NCCL WARN first\n", "a:1:2 [0] NCCL WARN last\n"
    (tmp_path / "job.out").write_text(first + "a step\n" * 400_000 + last)
    assert read_page(directory).output == (first.strip(), last.strip())


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    page = read_page(tmp_path / "missing")
    assert page.problem == f"no steps: {tmp_path}/missing: No such file or directory"


def test_of_all_processes_one_line_of_each_node_is_kept() -> None:
    """The text of the line is that of NVIDIA/nccl#1597 (github.com/NVIDIA/nccl/issues/1597)."""
    line = "8h200-{}:{}:6838 [{}] NCCL INFO NET/OFI Selected Provider is efa (found 16 nics)"
    kept = kept_lines([line.format(node, 6310 + gpu, gpu) for node in (2, 3) for gpu in range(8)])
    assert kept == (line.format(2, 6310, 0), line.format(3, 6310, 0))


def test_lines_of_an_earlier_run_are_left_out() -> None:
    """Its machines may have been replaced since, for what these lines report."""
    runs = [f"corral: job 17, run {run}, first node train-1, newest in checkpoints: nothing" for run in (1, 2)]
    lines = [f"train-{run}:1:1 [0] NCCL INFO Using network Socket" for run in (1, 2)]
    assert kept_lines([runs[0], lines[0], runs[1], lines[1]]) == (lines[1],)


def test_no_more_lines_are_kept_than_a_page_holds() -> None:
    assert len(kept_lines(f"h{number}:1:1 [0] NCCL WARN x" for number in range(1000))) == MOST_LINES


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process needs root: run the tests as root")
@pytest.mark.usefixtures("system_python")
def test_a_link_leads_where_the_user_may_read_alone(public_path: Path) -> None:
    directory = job_directory(public_path)
    (public_path / "secret").write_text("a:1:2 [0] NCCL WARN a secret of root's\n")
    (public_path / "secret").chmod(0o600)
    (directory / "output").write_text(str(public_path / "secret"))
    for path in (*directory.iterdir(), directory):
        os.chown(path, NOBODY, NOBODY)
    page = read_as_user(NOBODY, directory, 0)
    expected = (1, (), f"no output: {public_path}/secret: Permission denied")
    assert (len(page.ranks), page.output, page.problem) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process needs root: run the tests as root")
@pytest.mark.usefixtures("system_python")
def test_a_directory_of_somebody_else_is_refused(public_path: Path) -> None:
    directory = job_directory(public_path)
    page = read_as_user(NOBODY, directory, 0)
    assert page.problem == f"no steps: {directory} is not a directory of the job's user"


def answer(name: str, value: object) -> str:
    """A program that answers with a page of one process, in which one value differs from what is right."""
    rank = RankSteps(rank=0, node="train-1", size=1, restarts=0, step_s=2.0)
    document = json.loads(to_line(StepPage(ranks=(rank,), next=None, variables={})))
    (document if name in document else document["ranks"][0])[name] = value
    return f"print({json.dumps(document)!r})"


@pytest.mark.parametrize(("name", "value"), [("step_s", 3.0), ("next", 96)])
def test_an_answer_of_the_right_shape_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    reader_that_runs(answer(name, value), tmp_path, monkeypatch)
    assert read_as_user(os.geteuid(), tmp_path, 0).ranks[0].node == "train-1"


def reader_that_runs(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the reader's program: a user may write its answer."""
    fake = tmp_path / "entry_point.py"
    fake.write_text(program)
    monkeypatch.setattr(user_reader.entry_point, "__file__", str(fake))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import time; time.sleep(60)", "not read within"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "too long"),
        ("print('{}')", "no record of steps"),
        ("print('[' * 200000)", "no record of steps"),
        (answer("next", 0), "no record of steps"),
        (answer("next", 97), "no record of steps"),
        (answer("step_s", float("nan")), "no record of steps"),
        (answer("step_s", 10**400), "no record of steps"),
        (answer("node", "n" * 3000), "no record of steps"),
        ("", "not read within"),
    ],
)
def test_an_answer_that_is_no_record_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    monkeypatch.setattr(user_reader, "_TIMEOUT_S", 5.0)
    reader_that_runs(program, tmp_path, monkeypatch)
    with pytest.raises(JobReadError, match=reason):
        read_as_user(os.geteuid(), tmp_path, 0)


def test_of_an_answer_without_end_only_the_beginning_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "written"
    program = "import os\nfor number in range(64):\n os.write(1, b'x' * 1048576)\n open({!r}, 'a').write('x')"
    reader_that_runs(program.format(str(written)), tmp_path, monkeypatch)
    with pytest.raises(JobReadError, match="too long"):
        read_as_user(os.geteuid(), tmp_path, 0)
    assert len(written.read_text()) <= 2


# A program in the reader's process gives its pipe to another one, which its user lets run.
KEEPS_THE_PIPE = """
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(20)
    os._exit(0)
print({page!r}, end="", flush=True)
"""
# Another process of the user traces the reader's: its end is then the tracer's first. 0x4206: PTRACE_SEIZE
TRACED = """
import ctypes, os, time
reader = os.getpid()
if os.fork() == 0:
    os.setsid()
    os.close(1)
    failed = ctypes.CDLL(None).ptrace(0x4206, reader, None, None)
    open({started!r}, "w").write(str(failed))
    time.sleep(20)
    os._exit(0)
time.sleep(20)
"""


def seconds_until_refused(directory: Path) -> float:
    began = time.monotonic()
    with pytest.raises(JobReadError, match="not read within"):
        read_as_user(os.geteuid(), directory, 0)
    return time.monotonic() - began


def test_a_user_who_keeps_the_readers_pipe_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_reader, "_TIMEOUT_S", 2.0)
    page = to_line(StepPage(ranks=(), next=None, variables={}))
    reader_that_runs(KEEPS_THE_PIPE.format(page=page), tmp_path, monkeypatch)
    assert seconds_until_refused(tmp_path) < 10


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_user_who_traces_the_reader_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_reader, "_TIMEOUT_S", 2.0)
    started = tmp_path / "started"
    reader_that_runs(TRACED.format(started=str(started)), tmp_path, monkeypatch)
    assert (seconds_until_refused(tmp_path) < 10, started.read_text()) == (True, "0")


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process needs root: run the tests as root")
@pytest.mark.usefixtures("system_python")
def test_until_its_program_runs_the_reader_is_roots(public_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who stops all own processes all the time met one start in thirty before its program ran."""
    started: list[dict[str, Any]] = []
    start = subprocess.Popen

    def recorded(command: Any, **options: Any) -> Any:
        started.append(options)
        return start(command, **options)

    monkeypatch.setattr(subprocess, "Popen", recorded)
    read_as_user(NOBODY, public_path, 0)
    assert [{*options} & {"user", "group", "extra_groups", "preexec_fn"} for options in started] == [set()]


def test_the_reader_has_no_variable_of_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRAL_OF_ROOT", "secret")
    found = tmp_path / "variables"
    program = f"import os; open({str(found)!r}, 'w').write(str('CORRAL_OF_ROOT' in os.environ))"
    reader_that_runs(program, tmp_path, monkeypatch)
    with pytest.raises(JobReadError):
        read_as_user(os.geteuid(), tmp_path, 0)
    assert found.read_text() == "False"


def test_the_readers_process_answers_with_a_page(tmp_path: Path) -> None:
    page = read_as_user(os.geteuid(), job_directory(tmp_path), 0)
    assert (page.next, page.variables, page.output, len(page.ranks), len(page.curve)) == (
        None,
        {},
        ("node-1:1:2 [0] NCCL INFO Using network Libfabric",),
        1,
        1,
    )


def test_the_curve_of_a_process_has_at_most_forty_points_of_consecutive_steps() -> None:
    records = [{**STEP, "at": number, "step": number, "seconds": 1.0 + number} for number in range(83)]
    curve = read_rank(0, text(HEADER, *records)).curve
    first = StepPoint(
        at=4, step=4, step_s=5.0 - 0.5, tokens_per_s=910.2, data_share=0.04444, communication_share=None, loss=None
    )
    assert (len(curve), curve[0], curve[-1].step) == (40, first, 82)


def test_a_point_of_the_curve_has_what_was_recorded_of_communication_and_loss() -> None:
    (point,) = read_rank(0, text(HEADER, {**STEP, "communication_s": 0.5, "loss": -1.5})).curve
    assert (point.communication_share, point.loss) == (0.25, -1.5)


def test_only_the_first_page_has_a_curve(tmp_path: Path) -> None:
    directory = job_directory(tmp_path, ranks=3)
    assert [len(read_page(directory, start, 2).curve) for start in (0, 2)] == [1, 0]


def test_steps_that_record_anything_make_a_curve_of_finite_numbers() -> None:
    wild = {**STEP, "seconds": 0, "tokens": "many", "data_s": -1, "communication_s": True, "loss": 1e300}
    (point,) = read_rank(0, text(HEADER, wild)).curve
    assert (point.step_s, point.tokens_per_s, point.data_share, point.communication_share, point.loss) == (
        0.0,
        0.0,
        0.0,
        0.0,
        None,
    )


def test_a_page_of_processes_fits_into_an_answer_of_systems_manager(tmp_path: Path) -> None:
    """24,000 characters, of gzip -9 in base64 (`plan.iam.head_documents`)."""
    import base64
    import gzip
    import random

    chance = random.Random(1)
    directory = job_directory(tmp_path)
    for rank in range(step_files.PAGE_SIZE):
        parts = {name: chance.uniform(0.01, 0.9) for name in ("data_s", "communication_s", "write_s", "loss")}
        memory = {name: chance.randrange(1 << 36) for name in ("memory_peak", "memory_reserved", "memory_total")}
        records = [{**STEP, **parts, **memory, "seconds": chance.uniform(1, 2)} for _ in range(20)]
        (directory / f"rank-{rank:05}.jsonl").write_text(text({**HEADER, "node": f"train-{rank // 8}"}, *records))
    answer = to_line(read_page(directory)).encode()
    assert len(base64.b64encode(gzip.compress(answer, 9))) < 20_000
