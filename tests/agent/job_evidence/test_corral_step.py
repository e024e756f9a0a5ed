"""corral_step in real processes: what it writes, how long a step takes, and what a kill leaves.

torch, Lightning and transformers are not installed. Their callbacks are called as their documentation has them:
lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.Callback.html and
huggingface.co/docs/transformers/main_classes/callback. PyTorch's functions are those of
docs.pytorch.org/docs/stable/generated/torch.cuda.memory.memory_stats.html.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from corral.agent.job_library import corral_step
from corral.agent.job_library.corral_step import HuggingFaceSteps, LightningSteps, StepRecorder

SOURCE = Path(corral_step.__file__)
LONG_RUN = """
import time
from corral_step import StepRecorder
with StepRecorder(flush_s=0.02) as steps:
    while True:
        time.sleep(0.001)
        steps.end_step(tokens=8)
"""


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def time(self) -> float:
        return 1.7e9 + self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(corral_step, "time", found)
    return found


@pytest.fixture(autouse=True)
def without_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corral_step, "_CLOSING_S", 60.0)  # a busy disk of the tests is no subject of theirs
    for name in (*os.environ,):
        if name.startswith(("SLURM", "NCCL", "RANK", "WORLD_SIZE", "CORRAL_STEP")):
            monkeypatch.delenv(name)


def all_lines(directory: Path, rank: int = 0) -> list[dict[str, Any]]:
    text = (directory / f"rank-{rank:05}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines() if line]


def lines(directory: Path, rank: int = 0) -> list[dict[str, Any]]:
    """Those of steps and errors, and the first one."""
    return [line for line in all_lines(directory, rank) if "closed" not in line]


def run(program: str, directory: Path, **environment: str) -> subprocess.Popen[bytes]:
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE.parent), "CORRAL_STEP_DIR": str(directory)}
    return subprocess.Popen([sys.executable, "-c", program], env={**variables, **environment}, stderr=subprocess.PIPE)


def test_a_step_is_recorded_with_its_parts(tmp_path: Path, clock: Clock) -> None:
    with StepRecorder(tmp_path) as steps:
        steps.add_data_wait(0.25)
        with steps.communication():
            clock.now += 0.5
        clock.now += 1.5
        steps.end_step(tokens=4096, loss=2.5)
    assert lines(tmp_path)[1:] == [
        {
            "at": 1700000102.0,
            "step": 1,
            "steps": 1,
            "seconds": 2.0,
            "data_s": 0.25,
            "checkpoint_s": 0.0,
            "tokens": 4096,
            "communication_s": 0.5,
            "loss": 2.5,
        }
    ]


def test_the_first_line_has_the_rank_the_node_and_the_variables_of_the_network(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"RANK": "7", "SLURM_PROCID": "1", "WORLD_SIZE": "16", "SLURMD_NODENAME": "train-2"}
    recorded = {"CORRAL_RUN": "llama", "NCCL_DEBUG": "INFO"}
    for name, value in {**given, **recorded, "SECRET": "x"}.items():
        monkeypatch.setenv(name, value)
    StepRecorder(tmp_path).set_loss(1)
    with StepRecorder(tmp_path) as steps:
        steps.end_step()
    header = {"corral_step": 1, "at": 1700000100.0, "rank": 7, "size": 16, "node": "train-2", "restarts": 0}
    assert lines(tmp_path, 7)[0] == {**header, "variables": recorded}


def test_fast_steps_share_a_line_of_a_second(tmp_path: Path, clock: Clock) -> None:
    with StepRecorder(tmp_path) as steps:
        for _ in range(9):
            clock.now += 0.25
            steps.end_step(tokens=10)
    shown = [(one["step"], one["steps"], one["seconds"], one["tokens"]) for one in lines(tmp_path)[1:]]
    assert shown == [(4, 4, 1.0, 40), (8, 4, 1.0, 40), (9, 1, 0.25, 10)]


def test_a_checkpoint_is_no_part_of_a_step(tmp_path: Path, clock: Clock) -> None:
    with StepRecorder(tmp_path) as steps:
        clock.now += 2
        steps.end_step()
        with steps.checkpoint():
            clock.now += 30
        clock.now += 2
        steps.end_step()
    assert [(one["seconds"], one["checkpoint_s"]) for one in lines(tmp_path)[1:]] == [(2.0, 0.0), (2.0, 30.0)]


def test_each_line_after_a_checkpoint_has_its_time_and_after_two_the_time_between(tmp_path: Path, clock: Clock) -> None:
    with StepRecorder(tmp_path) as steps:
        for saves in (False, True, False, True, False):
            clock.now += 10
            steps.end_step()
            if saves:
                with steps.checkpoint():
                    clock.now += 5
    found = [(one.get("saved_at"), one.get("saved_after_s")) for one in lines(tmp_path)[1:]]
    first, second = 1_700_000_125, 1_700_000_150
    assert found == [(None, None), (None, None), (first, None), (first, None), (second, 25)]


def test_the_last_checkpoint_is_recorded_without_a_step_behind_it(tmp_path: Path, clock: Clock) -> None:
    with StepRecorder(tmp_path) as steps:
        clock.now += 2
        steps.end_step()
        with steps.checkpoint():
            clock.now += 30
    assert [(one["steps"], one["checkpoint_s"]) for one in lines(tmp_path)[1:]] == [(1, 0.0), (0, 30.0)]


def test_an_evaluation_between_steps_is_in_no_step(tmp_path: Path, clock: Clock) -> None:
    with StepRecorder(tmp_path) as steps:
        clock.now += 2
        steps.end_step()
        clock.now += 60
        steps.start_step()
        clock.now += 2
        steps.end_step()
    assert [one["seconds"] for one in lines(tmp_path)[1:]] == [2.0, 2.0]


def test_a_loader_is_timed(tmp_path: Path, clock: Clock) -> None:
    def loader() -> Iterator[int]:
        for batch in range(2):
            clock.now += 3
            yield batch

    with StepRecorder(tmp_path) as steps:
        for _ in steps.batches(loader()):
            clock.now += 1
            steps.end_step()
    assert [(one["seconds"], one["data_s"]) for one in lines(tmp_path)[1:]] == [(4.0, 3.0), (4.0, 3.0)]


def test_what_ended_the_training_is_recorded(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(MemoryError), StepRecorder(tmp_path):
        raise MemoryError("x" * 1000)
    assert lines(tmp_path)[1] == {"error": "MemoryError", "message": "x" * 300, "at": 1700000100.0, "loss": None}


def test_the_end_of_the_training_is_recorded_after_its_last_step(tmp_path: Path, clock: Clock) -> None:
    with StepRecorder(tmp_path) as steps:
        steps.end_step(loss=2.5)
    assert [(line.get("step"), line.get("loss"), line.get("closed")) for line in all_lines(tmp_path)[1:]] == [
        (1, 2.5, None),
        (None, None, 1700000100.0),
    ]


def test_a_program_that_made_no_step_leaves_no_file(tmp_path: Path) -> None:
    with StepRecorder(tmp_path):
        pass
    assert [*tmp_path.iterdir()] == []


def test_without_a_directory_nothing_is_recorded_and_no_thread_runs(tmp_path: Path) -> None:
    import threading

    before = threading.active_count()
    with StepRecorder() as steps:
        steps.end_step(tokens=1, loss=1.0)
        assert threading.active_count() == before


def test_a_directory_that_cannot_be_written_costs_one_line_and_no_step(tmp_path: Path) -> None:
    program = (
        "from corral_step import StepRecorder\nwith StepRecorder(flush_s=0.01) as s: s.end_step()\nprint('trained')"
    )
    done = run(program, tmp_path / "missing")
    errors = done.communicate()[1].decode()
    assert (done.returncode, errors.count("\n"), "steps are not recorded" in errors) == (0, 1, True)


def test_a_link_at_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / "rank-00000.jsonl").symlink_to(tmp_path / "other")
    with StepRecorder(tmp_path) as steps:
        steps.end_step()
    assert (tmp_path / "other").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's directory needs root: run the tests as root")
def test_a_directory_of_another_user_gets_no_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.chown(tmp_path, 65534, 65534)
    with StepRecorder(tmp_path) as steps:
        steps.end_step()
    error = f"corral_step: {tmp_path} is another user's; steps are not recorded\n"
    assert ([*tmp_path.iterdir()], capsys.readouterr().err) == ([], error)


def test_a_killed_process_leaves_whole_lines_and_the_next_one_continues_them(tmp_path: Path) -> None:
    for _ in range(3):
        process = run(LONG_RUN, tmp_path)
        before = (tmp_path / "rank-00000.jsonl").stat().st_size if (tmp_path / "rank-00000.jsonl").exists() else 0
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(0.05)
            file = tmp_path / "rank-00000.jsonl"
            if file.exists() and file.stat().st_size > before + 400:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert [line.get("corral_step") for line in lines(tmp_path) if "corral_step" in line] == [1, 1, 1]


def test_a_file_is_bounded_and_begins_with_its_header_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corral_step, "_RECORD_S", 0.0)
    monkeypatch.setattr(corral_step, "_FILE_BYTES", 4096)
    recorder, deadline = StepRecorder(tmp_path, flush_s=0.001), time.monotonic() + 20
    while not (tmp_path / "rank-00000.jsonl.1").exists() and time.monotonic() < deadline:
        recorder.end_step(tokens=1)
        time.sleep(0.001)
    recorder.end_step(tokens=1)
    recorder.close()
    sizes = {file.name: file.stat().st_size < 2 * 4096 for file in tmp_path.iterdir()}
    found = (sizes, lines(tmp_path)[0]["corral_step"])
    assert found == ({"rank-00000.jsonl": True, "rank-00000.jsonl.1": True}, 1)


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    recorder = StepRecorder(tmp_path)
    recorder.end_step()
    if (child := os.fork()) == 0:
        recorder.close()
        os._exit(0)
    os.waitpid(child, 0)
    recorder.close()
    assert len(lines(tmp_path)) == 2


def test_a_step_costs_microseconds(tmp_path: Path) -> None:
    """About 2 on one core of 2026; the limit leaves room for a busy machine."""
    with StepRecorder(tmp_path) as steps:
        began = time.perf_counter()
        for _ in steps.batches(range(50_000)):
            steps.end_step(tokens=8192, loss=1.0)
        assert (time.perf_counter() - began) / 50_000 < 50e-6


def test_torchs_memory_is_recorded_without_importing_torch(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = {"allocated_bytes.all.peak": 70, "reserved_bytes.all.peak": 75, "num_alloc_retries": 2}
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        current_device=lambda: 3,
        memory_stats=lambda device: stats if device == 3 else {},
        get_device_properties=lambda device: SimpleNamespace(total_memory=80),
    )
    torch = ModuleType("torch")
    torch.cuda = cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    with StepRecorder(tmp_path) as steps:
        steps.end_step()
    found = {name: value for name, value in lines(tmp_path)[1].items() if name.startswith("memory")}
    assert found == {"memory_peak": 70, "memory_reserved": 75, "memory_total": 80, "memory_retries": 2}


def test_a_tensor_is_detached_at_once_and_read_by_the_thread(tmp_path: Path) -> None:
    import threading

    seen: list[str] = []

    class Tensor:
        def detach(self) -> Tensor:
            seen.append(threading.current_thread().name)
            return self

        def __float__(self) -> float:
            seen.append(threading.current_thread().name)
            return 1.25

    with StepRecorder(tmp_path) as steps:
        steps.end_step(loss=Tensor())
    assert (seen, lines(tmp_path)[1]["loss"]) == (["MainThread", "corral_step"], 1.25)


def test_lightnings_hooks_measure_steps_data_and_checkpoints(tmp_path: Path, clock: Clock) -> None:
    hooks = LightningSteps(StepRecorder(tmp_path), tokens=len)
    hooks.on_train_start(None, None)
    hooks.on_train_batch_start(None, None, "abcd", 0)
    clock.now += 2
    hooks.on_train_batch_end(None, None, {"loss": 3.0}, "abcd", 0)
    clock.now += 1
    hooks.on_save_checkpoint(None, None, {})
    clock.now += 20
    hooks.on_train_batch_start(None, None, "ab", 1)
    clock.now += 2
    hooks.on_train_batch_end(None, None, {"loss": 2.0}, "ab", 1)
    hooks.on_train_end(None, None)
    shown = [(one["seconds"], one["data_s"], one["checkpoint_s"], one["tokens"]) for one in lines(tmp_path)[1:]]
    assert shown == [(2.0, 0.0, 0.0, 4), (3.0, 1.0, 20.0, 2)]


def test_hugging_faces_hooks_measure_steps_data_and_checkpoints(tmp_path: Path, clock: Clock) -> None:
    hooks, args = HuggingFaceSteps(StepRecorder(tmp_path)), SimpleNamespace(world_size=4)
    hooks.on_train_begin(args, SimpleNamespace(global_step=0, num_input_tokens_seen=0), None, model=None)
    for step in (1, 2):
        state = SimpleNamespace(global_step=step, num_input_tokens_seen=step * 4000)
        clock.now += 1
        hooks.on_step_begin(args, state, None, model=None)
        clock.now += 2
        hooks.on_step_end(args, state, None, model=None)
        hooks.on_log(args, state, None, logs={"loss": 2.0}, model=None)
        if step == 1:
            clock.now += 20
            hooks.on_save(args, state, None, model=None)
    hooks.on_train_end(args, None, None)
    shown = [
        (one["step"], one["seconds"], one["data_s"], one["checkpoint_s"], one["tokens"]) for one in lines(tmp_path)[1:]
    ]
    assert shown == [(1, 3.0, 0.0, 0.0, 1000), (2, 3.0, 1.0, 20.0, 1000)]


def test_callbacks_are_of_the_frameworks_own_class(monkeypatch: pytest.MonkeyPatch) -> None:
    class Callback:
        """A framework's base, which has hooks that corral does not use."""

        def on_epoch_begin(self, *_: object, **__: object) -> str:
            return "the framework's"

    for name, attribute in (("lightning.pytorch", "Callback"), ("transformers", "TrainerCallback")):
        module = ModuleType(name)
        setattr(module, attribute, Callback)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "lightning", ModuleType("lightning"))
    made = (corral_step.lightning_callback(), corral_step.hugging_face_callback())
    assert [(isinstance(one, Callback), one.on_epoch_begin()) for one in made] == [(True, "the framework's")] * 2


def test_it_imports_the_standard_library_alone() -> None:
    program = (
        "import sys; import corral_step; print({n.partition('.')[0] for n in sys.modules} - sys.stdlib_module_names)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(eval(done.stdout)) == ["__main__", "corral_step"]
