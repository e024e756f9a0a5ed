"""examples/train/train.py as a user runs it: two processes that meet on loopback, signals, kills and torn files."""

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

PROGRAM = Path(__file__).parents[2] / "examples/train/train.py"
PATIENCE_S = 60  # a run takes 3 s, several times that on a busy machine
OPTIONS = ("--steps", "40", "--every", "10", "--layers", "1")
SLOWLY = ("--nap", "0.02")  # so that a signal comes between steps that are meant


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The processes of a run, and where it saves."""

    processes: Sequence[subprocess.Popen[str]]
    checkpoints: Path

    def until(self, text: str) -> None:
        """Waits for a line of the first process with this text in it."""
        output = self.processes[0].stdout
        assert output is not None
        assert any(text in line for line in output), self.processes[0].communicate()

    def end(self) -> Ended:
        """What the processes said and returned."""
        timer = Timer(PATIENCE_S, lambda: [process.kill() for process in self.processes])
        timer.start()
        said = [process.communicate() for process in self.processes]
        timer.cancel()
        codes = tuple(process.returncode for process in self.processes)
        losses = Path(f"{self.checkpoints}.losses")
        return Ended(
            codes=codes,
            outputs=tuple(out for out, _ in said),
            errors=tuple(error for _, error in said),
            losses=losses.read_text() if losses.exists() else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that has ended: of each process its exit code and what it wrote, and the file of losses."""

    codes: tuple[int, ...]
    outputs: tuple[str, ...]
    errors: tuple[str, ...]
    losses: str

    def lines_with(self, text: str) -> list[str]:
        """The lines with this text, of all processes."""
        return [line for output in (*self.outputs, *self.errors) for line in output.splitlines() if text in line]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """A directory for runs; what one has compiled, the others find there."""

    directory: Path

    def start(self, name: str, *options: str, processes: int = 2) -> Run:
        """A run that saves under this name; one process alone is told nothing of others."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        met = {"JAX_COORDINATOR_ADDRESS": address, "WORLD_SIZE": str(processes)} if processes > 1 else {}
        environments = [{**self.environment(name), **met, "RANK": str(rank)} for rank in range(processes)]
        return Run(
            processes=tuple(self.process(environment, *options) for environment in environments),
            checkpoints=self.directory / name,
        )

    def environment(self, name: str) -> dict[str, str]:
        """What every process is told; nothing that a job around the tests would tell."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "JAX", "XLA"))}
        cache = {
            "JAX_COMPILATION_CACHE_DIR": str(self.directory / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        return {**kept, **cache, "JAX_PLATFORMS": "cpu", "CHECKPOINT_DIR": str(self.directory / name)}

    def process(self, environment: dict[str, str], *options: str) -> subprocess.Popen[str]:
        """The program, running."""
        command = [sys.executable, str(PROGRAM), *OPTIONS, *options]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=self.directory
        )

    def copy(self, name: str, new: str) -> Path:
        """A copy of what a run has saved; its directory."""
        shutil.copy(self.directory / f"{name}.losses", self.directory / f"{new}.losses")
        return Path(shutil.copytree(self.directory / name, self.directory / new))


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(directory=tmp_path_factory.mktemp("train"))


@pytest.fixture(scope="module")
def whole(workshop: Workshop) -> Ended:
    """40 steps in one go. After the fifth, one process is asked for a checkpoint - not the one that saves."""
    run = workshop.start("whole", *SLOWLY)
    run.until("step 5 of 40")
    run.processes[1].send_signal(signal.SIGUSR1)
    return run.end()


def test_two_processes_train_to_the_last_step(whole: Ended) -> None:
    steps = [int(line.split()[0]) for line in whole.losses.splitlines()]
    assert (whole.codes, steps) == ((0, 0), list(range(1, 41))), whole.errors


def test_the_loss_goes_down(whole: Ended) -> None:
    losses = [float(line.split()[2]) for line in whole.losses.splitlines()]
    assert losses[0] > 5.5 > 3.3 > losses[-1]


def test_all_processes_save_after_the_same_step_when_one_is_asked(whole: Ended) -> None:
    agreed = [line.split(" agrees to ")[1] for line in whole.lines_with(" agrees to ")]
    assert (len(agreed), len(set(agreed)), len(whole.lines_with("saved "))) == (2, 1, 5), whole.outputs


def test_the_newest_two_checkpoints_are_kept(workshop: Workshop, whole: Ended) -> None:
    found = sorted(path.name for path in (workshop.directory / "whole").iterdir())
    assert found == ["step-00000030.npz", "step-00000040.npz"]


def test_a_run_that_was_killed_goes_on_to_the_same_losses_bit_for_bit(workshop: Workshop, whole: Ended) -> None:
    run = workshop.start("killed", *SLOWLY)
    run.until("step 25 of 40")
    for process in run.processes:
        process.kill()
    killed = run.end()
    ended = workshop.start("killed").end()
    assert killed.losses.startswith(whole.losses[:100])
    assert (ended.lines_with("continues after step 20") != [], ended.losses) == (True, whole.losses), ended.errors


def test_a_torn_checkpoint_is_not_taken(workshop: Workshop, whole: Ended) -> None:
    torn = workshop.copy("whole", "torn") / "step-00000040.npz"
    os.truncate(torn, torn.stat().st_size // 2)
    ended = workshop.start("torn").end()
    said = (f"train.py: {torn} is damaged, trying the one before it", "continues after step 30")
    assert [len(ended.lines_with(text)) for text in said] == [1, 1], ended.outputs
    assert ended.losses == whole.losses


def test_another_number_of_devices_is_refused(workshop: Workshop, whole: Ended) -> None:
    directory = workshop.copy("whole", "alone")
    ended = workshop.start("alone", processes=1).end()
    remedy = "continue it as it was made, or set another CHECKPOINT_DIR to start anew"
    sentence = f"train.py: {directory / 'step-00000040.npz'} was made with devices 2, not 1: {remedy}\n"
    assert (ended.codes, ended.errors, ended.losses) == ((1,), (sentence,), whole.losses)


def test_one_process_trains_alone_on_a_file(workshop: Workshop) -> None:
    run = workshop.start("file", "--data", str(PROGRAM), "--steps", "3", processes=1)
    ended = run.end()
    assert (ended.codes, ended.errors, len(ended.losses.splitlines())) == ((0,), ("",), 3)


def test_without_jax_it_says_how_to_get_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", str(PROGRAM)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    said = done.stderr.partition(" has no ")[2]
    assert (done.returncode, said) == (1, "jax: pip install jax, or 'jax[cuda13]' for NVIDIA GPUs\n")
