"""Record the steps of a training program: seconds, tokens, loss, waiting for data, communication, checkpoints, memory.

corral's job scripts put this file on PYTHONPATH and set CORRAL_STEP_DIR. Without that variable, nothing is recorded.

    from corral_step import StepRecorder

    with StepRecorder() as steps:
        for batch in steps.batches(loader):         # measures the wait for data
            loss = train(batch)
            with steps.communication():             # optional: around what waits for other processes
                dist.all_reduce(...)
            steps.end_step(tokens=batch.numel(), loss=loss)
            if save_now:
                with steps.checkpoint():
                    save()

Lightning: Trainer(callbacks=[lightning_callback()]). Hugging Face: Trainer(callbacks=[hugging_face_callback()]).

`corral diagnose` reads the files, one per process: lines of JSON, the first of each run with what does not change. A
line covers a second or one step, whichever is longer. A thread writes them every five seconds, so a slow file system
does not slow down the training; a killed process loses the last five seconds. A file has at most 256 KiB, and there is
one older one.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

DIRECTORY = "CORRAL_STEP_DIR"
FORMAT = 1
_RECORD_S = 1.0  # a line covers at least this time
_FLUSH_S = 5.0
_FILE_BYTES = 256 * 1024
_PENDING = 1024  # lines that wait for a file system; older ones are dropped
_CLOSING_S = 2.0  # the longest that the end of the program waits for the file system
_VARIABLES = ("NCCL_", "FI_", "OFI_", "RDMAV_", "IBV_", "NEURON_", "PYTORCH_", "CORRAL_RUN")
_MOST_VARIABLES, _LONGEST_TEXT = 64, 300
RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


class StepRecorder:
    """The recorder of one process.

    `directory`: default $CORRAL_STEP_DIR; without it, nothing is recorded. `rank`: default that of torchrun, Slurm or
    MPI. It never raises for a file that cannot be written: it prints one line and stops recording.
    """

    def __init__(
        self, directory: str | os.PathLike[str] | None = None, *, rank: int | None = None, flush_s: float = _FLUSH_S
    ) -> None:
        found = directory if directory is not None else os.environ.get(DIRECTORY)
        self._file: _StepFile | None = None
        self._step = self._steps = self._tokens = 0
        self._data_s = self._communication_s = self._checkpoint_s = 0.0
        self._knows_communication = False
        self._saved_at: float | None = None
        self._newly_saved_at: float | None = None
        self._saved_after_s: float | None = None
        self._loss: Any = None
        self._device: int | None = None
        self._last = self._began = time.perf_counter()
        if found:
            self._file = _StepFile(Path(found), _first_number(RANKS, 0) if rank is None else rank, flush_s)
            atexit.register(self.close)

    def __enter__(self) -> StepRecorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.close(error)

    def start_step(self) -> None:
        """Start the clock of the step now: what came since the last step, such as an evaluation, is in none."""
        now = time.perf_counter()
        self._began += now - self._last
        self._last = now

    def batches(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The loader's batches; the time in which the loop waits for one counts as waiting for data."""
        iterator = iter(loader)
        while True:
            began = time.perf_counter()
            try:
                batch = next(iterator)
            except StopIteration:
                return
            self._data_s += time.perf_counter() - began
            yield batch

    def add_data_wait(self, seconds: float) -> None:
        """Count these seconds of the present step as waiting for data."""
        self._data_s += seconds

    def add_communication(self, seconds: float) -> None:
        """Count these seconds of the present step as waiting for other processes."""
        self._communication_s += seconds
        self._knows_communication = True

    def add_checkpoint(self, seconds: float) -> None:
        """Count these seconds, until now, as saving a checkpoint, which is no part of a step."""
        self._checkpoint_s += seconds
        self._newly_saved_at = time.time()
        self._last += seconds
        self._began += seconds

    @contextlib.contextmanager
    def communication(self) -> Iterator[None]:
        """Count the time within as waiting for other processes. The device's work must end within, too."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add_communication(time.perf_counter() - began)

    @contextlib.contextmanager
    def checkpoint(self) -> Iterator[None]:
        """Count the time within as saving a checkpoint."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add_checkpoint(time.perf_counter() - began)

    def end_step(self, *, step: int | None = None, tokens: int = 0, loss: Any = None) -> None:
        """A step has ended. `step`: its number (default: one more than before). `tokens`: of this process.

        `loss`: a number, or a tensor, which is read later by the writing thread, so that the device is not awaited.
        """
        if self._file is None:
            return
        now = time.perf_counter()
        self._step = self._step + 1 if step is None else step
        self._steps += 1
        self._tokens += tokens
        if loss is not None:
            self._loss = loss
        self._last = now
        if now - self._began >= _RECORD_S or self._checkpoint_s:
            self._add()

    def set_loss(self, loss: Any) -> None:
        """The loss of the last step, if it is known only later. See `end_step`."""
        self._loss = loss

    def close(self, error: BaseException | None = None) -> None:
        """Write what is left. `error`: what ended the training; its name and the start of its text are recorded."""
        if self._file is None:
            return
        file = self._file
        if self._steps or self._checkpoint_s:
            self._add()
        if error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):
            file.add({"error": type(error).__name__, "message": str(error)[:_LONGEST_TEXT], "at": time.time()})
        if self._step:
            file.add({"closed": time.time()})  # no step is missing from now on
        self._file = None
        file.close()

    def _add(self) -> None:
        assert self._file is not None
        record = {
            "at": time.time(),
            "step": self._step,
            "steps": self._steps,
            "seconds": self._last - self._began,
            "data_s": self._data_s,
            "checkpoint_s": self._checkpoint_s,
            "tokens": self._tokens,
        }
        if self._knows_communication:
            record["communication_s"] = self._communication_s
        if self._newly_saved_at is not None:  # several between two steps are one
            self._saved_after_s = None if self._saved_at is None else self._newly_saved_at - self._saved_at
            self._saved_at, self._newly_saved_at = self._newly_saved_at, None
        if self._saved_at is not None:
            record["saved_at"] = self._saved_at
        if self._saved_after_s is not None:
            record["saved_after_s"] = self._saved_after_s
        if self._device is None:
            self._device = _torch_device()
        detach = getattr(self._loss, "detach", None)  # a tensor would keep the graph of its step
        self._file.add(record, detach() if detach else self._loss, self._device)
        self._steps = self._tokens = 0
        self._data_s = self._communication_s = self._checkpoint_s = 0.0
        self._loss = None
        self._began = self._last


class _StepFile:
    """The file of a process, and the thread that writes it."""

    def __init__(self, directory: Path, rank: int, flush_s: float) -> None:
        self._path = directory / f"rank-{rank:05}.jsonl"
        self._header = _header(rank)
        self._flush_s = flush_s
        self._waiting: deque[tuple[dict[str, Any], Any, int | None]] = deque(maxlen=_PENDING)
        self._stop = threading.Event()
        self._process = os.getpid()
        self._descriptor = -1
        self._write_s: float | None = None
        self._is_broken = False
        self._thread = threading.Thread(target=self._run, name="corral_step", daemon=True)
        self._thread.start()

    def add(self, record: dict[str, Any], loss: Any = None, device: int | None = None) -> None:
        """Have this record written. A forked process, such as a loader's, writes none."""
        self._waiting.append((record, loss, device))

    def close(self) -> None:
        """Write what is left, for two seconds at most."""
        if os.getpid() != self._process:
            return
        self._stop.set()
        self._thread.join(_CLOSING_S)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop.wait(self._flush_s)
            try:
                self._flush()
            except OSError as error:
                if not self._is_broken:
                    print(f"corral_step: {error}; steps are not recorded", file=sys.stderr, flush=True)  # noqa: T201
                self._is_broken = True

    def _flush(self) -> None:
        records = []
        while self._waiting:
            records.append(self._waiting.popleft())
        if not records or self._is_broken:
            return
        newest, loss, device = next((one for one in reversed(records) if "steps" in one[0]), records[-1])
        newest.update(_memory(device))
        newest["loss"] = _as_number(loss)
        if self._write_s is not None:
            newest["write_s"] = self._write_s
        began = time.perf_counter()
        self._write("".join(_line(record) for record, _, _ in records).encode())
        self._write_s = time.perf_counter() - began

    def _write(self, lines: bytes) -> None:
        """Append whole lines in one call, and have them on disk: the time of that is a measure of the file system."""
        if self._descriptor < 0:
            self._open()
        os.write(self._descriptor, lines)
        os.fdatasync(self._descriptor)
        if os.fstat(self._descriptor).st_size > _FILE_BYTES:
            self._path.replace(f"{self._path}.1")
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if os.fstat(directory).st_uid != os.geteuid():  # as at the same path of another node's own disk
                raise PermissionError(f"{self._path.parent} is another user's")
            self._descriptor = os.open(self._path.name, flags, 0o600, dir_fd=directory)
        finally:
            os.close(directory)
        # A process that was killed while it wrote may have left a part of a line.
        os.write(self._descriptor, b"\n" + _line(self._header).encode())


class LightningSteps:
    """The hooks of Lightning. `tokens`: a function that counts the tokens of a batch.

    A wait between two batches is for data, or for a checkpoint from the moment at which Lightning collects its state.
    """

    def __init__(self, recorder: StepRecorder, tokens: Callable[[Any], int] | None = None) -> None:
        self._recorder, self._count = recorder, tokens
        self._ended: float | None = None
        self._saving: float | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the clock."""
        self._recorder.start_step()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """The wait before the batch ends."""
        now = time.perf_counter()
        if self._saving is not None:
            self._recorder.add_checkpoint(now - self._saving)
        if self._ended is not None:
            self._recorder.add_data_wait((self._saving or now) - self._ended)
        self._saving = None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """The step ends."""
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        self._recorder.end_step(tokens=self._count(batch) if self._count else 0, loss=loss)
        self._ended = time.perf_counter()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """What follows is no wait for data."""
        self._ended = None

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """An evaluation is no part of a step."""
        self._recorder.start_step()

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        """Lightning collects the state and then writes it."""
        self._saving = time.perf_counter()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """The training ends with an error."""
        self._recorder.close(exception)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """The training ends."""
        self._recorder.close()


class HuggingFaceSteps:
    """The hooks of Hugging Face's Trainer.

    Tokens are known with `include_num_input_tokens_seen` in the arguments: the Trainer counts those of all processes.
    """

    def __init__(self, recorder: StepRecorder) -> None:
        self._recorder = recorder
        self._ended: float | None = None
        self._seen = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start the clock."""
        self._recorder.start_step()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The wait before the step ends."""
        if self._ended is not None:
            self._recorder.add_data_wait(time.perf_counter() - self._ended)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The step ends."""
        seen = int(getattr(state, "num_input_tokens_seen", 0) or 0)
        tokens = (seen - self._seen) // max(1, int(getattr(args, "world_size", 1)))
        self._recorder.end_step(step=int(state.global_step), tokens=tokens)
        self._seen, self._ended = seen, time.perf_counter()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """The Trainer knows the loss only when it logs it."""
        if logs and "loss" in logs:
            self._recorder.set_loss(logs["loss"])

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An evaluation is no part of a step."""
        self._recorder.start_step()
        self._ended = time.perf_counter()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The Trainer has saved a checkpoint since the step or the evaluation."""
        now = time.perf_counter()
        if self._ended is not None:
            self._recorder.add_checkpoint(now - self._ended)
        self._ended = now

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The training ends."""
        self._recorder.close()


def lightning_callback(recorder: StepRecorder | None = None, tokens: Callable[[Any], int] | None = None) -> Any:
    """A callback for Lightning's Trainer. Raises ImportError without Lightning."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback
    return type("StepCallback", (LightningSteps, Callback), {})(recorder or StepRecorder(), tokens)


def hugging_face_callback(recorder: StepRecorder | None = None) -> Any:
    """A callback for Hugging Face's Trainer. Raises ImportError without transformers."""
    from transformers import TrainerCallback

    return type("StepCallback", (HuggingFaceSteps, TrainerCallback), {})(recorder or StepRecorder())


def _header(rank: int) -> dict[str, Any]:
    """What does not change in a run: where it runs, and the variables that decide about its communication."""
    own = sorted(name for name in os.environ if name.startswith(_VARIABLES))[:_MOST_VARIABLES]
    return {
        "corral_step": FORMAT,
        "at": time.time(),
        "rank": rank,
        "size": _first_number(_SIZES, 1),
        "node": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "restarts": _first_number(("SLURM_RESTART_COUNT",), 0),
        "variables": {name: os.environ[name][:_LONGEST_TEXT] for name in own},
    }


def _first_number(names: Iterable[str], default: int) -> int:
    """The number in the first of these variables that has one."""
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()), default)


def _torch_device() -> int | None:
    """The GPU of this process, if it uses PyTorch with one. A thread of its own would see the first GPU."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        return int(cuda.current_device()) if cuda is not None and cuda.is_initialized() else None
    except Exception:  # a recorder must not end the training
        return None


def _memory(device: int | None) -> dict[str, int]:
    """The memory of the GPU in bytes, at its peak, and how often the allocator emptied its cache to go on."""
    if device is None:
        return {}
    try:
        cuda = sys.modules["torch"].cuda
        found = cuda.memory_stats(device)
        return {
            "memory_peak": int(found["allocated_bytes.all.peak"]),
            "memory_reserved": int(found["reserved_bytes.all.peak"]),
            "memory_total": int(cuda.get_device_properties(device).total_memory),
            "memory_retries": int(found["num_alloc_retries"]),
        }
    except Exception:  # a recorder must not end the training
        return {}


def _as_number(loss: Any) -> float | None:
    try:
        return None if loss is None else float(loss)
    except Exception:  # a tensor of another shape, or on a device that is gone
        return None


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps({key: round(one, 6) if isinstance(one, float) else one for key, one in record.items()}) + "\n"
