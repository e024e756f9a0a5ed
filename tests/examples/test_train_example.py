"""examples/train/train.py as a user runs it: two processes on loopback, signals, kills and truncated files."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import pytest

from corral.agent.job_evidence.step_summary import read_rank
from corral.agent.job_library import corral_step

pytestmark = pytest.mark.long
PROGRAM = Path(__file__).parents[2] / "examples/train/train.py"
TIMEOUT_S = 60  # a run takes 3 s, several times that on a busy machine
OPTIONS = ("--steps", "40", "--every", "10", "--layers", "1")
SLOWLY = ("--nap", "0.02")  # so that a signal arrives at the intended step


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The processes of a run, and its checkpoint directory."""

    processes: Sequence[subprocess.Popen[str]]
    checkpoints: Path

    def wait_for_line(self, text: str) -> None:
        """Wait for a line of the first process that contains the text."""
        output = self.processes[0].stdout
        assert output is not None
        assert any(text in line for line in output), self.processes[0].communicate()

    def end(self) -> FinishedRun:
        """Wait for the processes; return their output and exit codes."""
        timer = Timer(TIMEOUT_S, lambda: [process.kill() for process in self.processes])
        timer.start()
        printed = [process.communicate() for process in self.processes]
        timer.cancel()
        codes = tuple(process.returncode for process in self.processes)
        losses = Path(f"{self.checkpoints}.losses")
        return FinishedRun(
            codes=codes,
            outputs=tuple(out for out, _ in printed),
            errors=tuple(error for _, error in printed),
            losses=losses.read_text() if losses.exists() else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A finished run: the exit code and output of each process, and the file of losses."""

    codes: tuple[int, ...]
    outputs: tuple[str, ...]
    errors: tuple[str, ...]
    losses: str

    def lines_with(self, text: str) -> list[str]:
        """The lines of all processes that contain the text."""
        return [line for output in (*self.outputs, *self.errors) for line in output.splitlines() if text in line]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """A directory for runs, which share a compilation cache."""

    directory: Path

    def start(self, name: str, *options: str, processes: int = 2) -> Run:
        """Start a run that saves to this name. A single process gets no coordinator."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        coordinator = {"JAX_COORDINATOR_ADDRESS": address, "WORLD_SIZE": str(processes)} if processes > 1 else {}
        environments = [{**self.environment(name), **coordinator, "RANK": str(rank)} for rank in range(processes)]
        return Run(
            processes=tuple(self.process(environment, *options) for environment in environments),
            checkpoints=self.directory / name,
        )

    def environment(self, name: str) -> dict[str, str]:
        """The environment of every process, without the variables of a surrounding Slurm job."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "JAX", "XLA"))}
        cache = {
            "JAX_COMPILATION_CACHE_DIR": str(self.directory / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        return {**kept, **cache, "JAX_PLATFORMS": "cpu", "CHECKPOINT_DIR": str(self.directory / name)}

    def process(self, environment: dict[str, str], *options: str) -> subprocess.Popen[str]:
        """Start the program."""
        command = [sys.executable, str(PROGRAM), *OPTIONS, *options]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=self.directory
        )

    def copy(self, name: str, new: str) -> Path:
        """Copy the files of a run; return the new checkpoint directory."""
        shutil.copy(self.directory / f"{name}.losses", self.directory / f"{new}.losses")
        return Path(shutil.copytree(self.directory / name, self.directory / new))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return RunDirectory(directory=tmp_path_factory.mktemp("train"))


@pytest.fixture(scope="module")
def uninterrupted(runs: RunDirectory) -> FinishedRun:
    """40 steps without interruption. After the fifth, the process that does not save gets a checkpoint request."""
    run = runs.start("whole", *SLOWLY)
    run.wait_for_line("step 5 of 40")
    run.processes[1].send_signal(signal.SIGUSR1)
    return run.end()


def test_two_processes_train_to_the_last_step(uninterrupted: FinishedRun) -> None:
    steps = [int(line.split()[0]) for line in uninterrupted.losses.splitlines()]
    assert (uninterrupted.codes, steps) == ((0, 0), list(range(1, 41))), uninterrupted.errors


def test_the_loss_decreases(uninterrupted: FinishedRun) -> None:
    losses = [float(line.split()[2]) for line in uninterrupted.losses.splitlines()]
    assert losses[0] > 5.5 > 3.3 > losses[-1]


def test_all_processes_save_after_the_same_step_if_one_gets_a_request(uninterrupted: FinishedRun) -> None:
    agreed = [line.split(" agrees to ")[1] for line in uninterrupted.lines_with(" agrees to ")]
    assert (len(agreed), len(set(agreed)), len(uninterrupted.lines_with("saved "))) == (2, 1, 5), uninterrupted.outputs


def test_the_newest_two_checkpoints_are_kept(runs: RunDirectory, uninterrupted: FinishedRun) -> None:
    found = sorted(path.name for path in (runs.directory / "whole").iterdir())
    assert found == ["step-00000030.npz", "step-00000040.npz"]


def test_killed_run_continues_to_the_same_losses_bit_for_bit(runs: RunDirectory, uninterrupted: FinishedRun) -> None:
    run = runs.start("killed", *SLOWLY)
    run.wait_for_line("step 25 of 40")
    for process in run.processes:
        process.kill()
    killed = run.end()
    ended = runs.start("killed").end()
    assert killed.losses.startswith(uninterrupted.losses[:100])
    assert (ended.lines_with("continues after step 20") != [], ended.losses) == (True, uninterrupted.losses), (
        ended.errors
    )


def test_truncated_checkpoint_is_skipped(runs: RunDirectory, uninterrupted: FinishedRun) -> None:
    truncated = runs.copy("whole", "truncated") / "step-00000040.npz"
    os.truncate(truncated, truncated.stat().st_size // 2)
    ended = runs.start("truncated").end()
    lines = (f"train.py: {truncated} is damaged, trying the one before it", "continues after step 30")
    assert [len(ended.lines_with(text)) for text in lines] == [1, 1], ended.outputs
    assert ended.losses == uninterrupted.losses


def test_another_number_of_devices_is_refused(runs: RunDirectory, uninterrupted: FinishedRun) -> None:
    directory = runs.copy("whole", "alone")
    ended = runs.start("alone", processes=1).end()
    remedy = "use the same settings, or set another CHECKPOINT_DIR to start a new run"
    sentence = f"train.py: {directory / 'step-00000040.npz'} was made with devices 2, not 1: {remedy}\n"
    assert (ended.codes, ended.errors, ended.losses) == ((1,), (sentence,), uninterrupted.losses)


def test_one_process_trains_alone_on_a_file(runs: RunDirectory) -> None:
    run = runs.start("file", "--data", str(PROGRAM), "--steps", "3", processes=1)
    ended = run.end()
    assert (ended.codes, ended.errors, len(ended.losses.splitlines())) == ((0,), ("",), 3)


def test_without_jax_it_shows_how_to_install_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", str(PROGRAM)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    message = done.stderr.partition(" has no ")[2]
    assert (done.returncode, message) == (1, "jax: pip install jax, or 'jax[cuda13]' for NVIDIA GPUs\n")


def test_on_a_cluster_it_records_its_steps(runs: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job scripts set both variables."""
    directory = runs.directory / "recorded-steps"
    directory.mkdir()
    monkeypatch.setenv("CORRAL_STEP_DIR", str(directory))
    monkeypatch.setenv("PYTHONPATH", str(Path(corral_step.__file__).parent))
    run = runs.start("recorded", "--steps", "12").end()
    found = [read_rank(rank, (directory / f"rank-{rank:05}.jsonl").read_text()).steps for rank in (0, 1)]
    assert (run.codes, [one.last_step for one in found]) == ((0, 0), [12, 12])
    assert all(one.tokens_per_s > 0 and one.loss for one in found)
