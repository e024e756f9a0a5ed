"""Train a small language model on bytes, on all processes of a job, and continue exactly where it was interrupted.

    python train.py                                       one process, all devices of this machine
    sbatch --nodes=2 jax.sbatch train.py --steps 1000     all processes of a job, on a corral cluster

The model is a decoder-only transformer. Each device has a copy of it and a share of the batch; the gradients are
averaged over all devices in each step. The program saves a checkpoint every --every steps, at the end, and on SIGUSR1.
If $CHECKPOINT_DIR has checkpoints, the run continues from the newest one. On the same number of devices, its losses are
bit for bit those of an uninterrupted run.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from itertools import accumulate, takewhile
from math import prod
from pathlib import Path
from typing import TextIO

# The order of additions decides the last bits of a sum. One CPU thread has one order; a flag makes GPUs keep to one.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_gpu_deterministic_ops=true")
try:
    import jax
    import numpy as np
    from jax import Array
    from jax import numpy as jnp
    from jax.experimental.multihost_utils import process_allgather
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
except ModuleNotFoundError as missing:
    sys.exit(f"train.py: {sys.executable} has no {missing.name}: pip install jax, or 'jax[cuda13]' for NVIDIA GPUs")

try:
    from corral_step import StepRecorder  # the job scripts put it on the path; it records steps for `corral diagnose`
except ModuleNotFoundError:
    StepRecorder = None

WARMUP_STEPS = 10
MEAN_DECAY, SQUARE_DECAY, WEIGHT_DECAY, EPSILON = 0.9, 0.95, 0.1, 1e-8
KEPT_CHECKPOINTS = 2
DIGEST_BYTES = 32  # SHA-256
SYNTHETIC_SENTENCES = 2000

Step = Callable[["State", Array, Array], tuple["State", Array, Array]]


class CannotTrainError(Exception):
    """Why this run cannot train, in one sentence for the user; empty if another process prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that the losses depend on. A run continues only a checkpoint of its own recipe."""

    devices: int
    text: str  # what identifies it
    seed: int
    lr: float
    batch: int
    length: int
    width: int
    layers: int
    heads: int
    dtype: str


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a step changes, the same on every device: the weights, and AdamW's means of gradients and of their squares.

    Each is one vector, so one exchange between the devices averages all gradients.
    """

    step: Array
    weights: Array
    mean: Array
    square: Array


# ---- the text


def read_text(file: Path | None) -> np.ndarray:
    """The bytes to learn, as uint8[n]: those of the file, or synthetic text, the same each time."""
    if not file:
        return np.frombuffer(synthetic_text().encode(), np.uint8)
    try:
        return np.memmap(file, np.uint8, "r")
    except OSError as error:
        raise CannotTrainError(f"--data: {file} cannot read the file: {error.strerror}") from error
    except ValueError as error:
        raise CannotTrainError(f"--data: {file} is empty") from error


def synthetic_text() -> str:
    """Sentences that follow a pattern, so that there is something to learn."""
    random = np.random.default_rng(0)
    users = ("ada", "grace", "alan", "barbara")
    ends = ("finished", "was requeued", "ran out of time", "saved and went on")

    def sentence(job: int) -> str:
        nodes, user, end = random.integers(1, 17), random.integers(len(users)), random.integers(len(ends))
        return f"job {job} of {users[user]} had {nodes} nodes with {8 * nodes} GPUs and {ends[end]}.\n"

    return "".join(sentence(job) for job in range(SYNTHETIC_SENTENCES))


def identity_of(text: np.ndarray) -> str:
    """A name that identifies this text, without reading all of a long one."""
    return f"{len(text)} bytes, sha256 of the first MiB {hashlib.sha256(text[: 2**20].tobytes()).hexdigest()[:12]}"


def share_of_batch(text: np.ndarray, recipe: Recipe, step: int, device: int) -> np.ndarray:
    """The tokens of a device in a step, int32[batch, length + 1]. They depend on the arguments only."""
    random = np.random.default_rng((recipe.seed, step, device))
    starts = random.integers(len(text) - recipe.length, size=recipe.batch)
    return text[starts[:, None] + np.arange(recipe.length + 1)].astype(np.int32)


# ---- the model


def shapes(recipe: Recipe) -> Mapping[str, tuple[int, int]]:
    """The shapes of the model's matrices by name, in their order in the weight vector."""
    width = recipe.width
    layer_shapes = {
        "attention_in": (width, 3 * width),
        "attention_out": (width, width),
        "mlp_in": (width, 4 * width),
        "mlp_out": (4 * width, width),
    }
    layers = {f"{name}_{layer}": shape for layer in range(recipe.layers) for name, shape in layer_shapes.items()}
    return {"bytes": (256, width), "positions": (recipe.length, width), **layers}


def matrices(weights: Array, recipe: Recipe) -> Mapping[str, Array]:
    """The weight vector as matrices by name."""
    named = shapes(recipe)
    ends = list(accumulate(prod(shape) for shape in named.values()))
    parts = jnp.split(weights, ends[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(named.items(), parts, strict=True)}


def initial_state(recipe: Recipe) -> State:
    """The state before the first step, as numpy arrays."""
    count = sum(prod(shape) for shape in shapes(recipe).values())
    weights = np.random.default_rng(recipe.seed).normal(0, 0.02, count).astype(np.float32)
    return State(step=np.int32(0), weights=weights, mean=np.zeros_like(weights), square=np.zeros_like(weights))


def mean_loss(weights: Array, tokens: Array, recipe: Recipe) -> Array:
    """The mean cross-entropy of each byte given those before it, in nats. `tokens`: int32[batch, length + 1]."""
    named = matrices(weights.astype(recipe.dtype), recipe)
    x = named["bytes"][tokens[:, :-1]] + named["positions"]
    for layer in range(recipe.layers):
        x = apply_layer(x, named, layer, recipe.heads)
    log_probabilities = jax.nn.log_softmax((rms_norm(x) @ named["bytes"].T).astype(jnp.float32))
    return -jnp.take_along_axis(log_probabilities, tokens[:, 1:, None], axis=-1).mean()


def apply_layer(x: Array, named: Mapping[str, Array], layer: int, heads: int) -> Array:
    """x after causal attention and a two-layer MLP, [batch, length, width]."""
    batch, length, width = x.shape
    projected = (rms_norm(x) @ named[f"attention_in_{layer}"]).reshape(batch, length, 3, heads, width // heads)
    query, key, value = jnp.moveaxis(projected, 2, 0)
    attended = jax.nn.dot_product_attention(query, key, value, is_causal=True)
    x = x + attended.reshape(x.shape) @ named[f"attention_out_{layer}"]
    return x + jax.nn.gelu(rms_norm(x) @ named[f"mlp_in_{layer}"]) @ named[f"mlp_out_{layer}"]


def rms_norm(x: Array) -> Array:
    """x scaled to a root mean square of 1 at each position."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def adamw_update(state: State, gradients: Array, lr: float) -> State:
    """The state after a step of AdamW. Source: Loshchilov and Hutter 2019, algorithm 2."""
    step = state.step + 1
    rate = lr * jnp.minimum(1.0, step / WARMUP_STEPS)
    mean = MEAN_DECAY * state.mean + (1 - MEAN_DECAY) * gradients
    square = SQUARE_DECAY * state.square + (1 - SQUARE_DECAY) * gradients**2
    scale = jnp.sqrt(square / (1 - SQUARE_DECAY**step)) + EPSILON
    change = mean / (1 - MEAN_DECAY**step) / scale + WEIGHT_DECAY * state.weights
    return State(step=step, weights=state.weights - rate * change, mean=mean, square=square)


def compile_step(recipe: Recipe, mesh: Mesh) -> Step:
    """A step on all devices: (state, tokens, requested) -> (state, loss, whether any process has a request)."""

    def step_on_device(state: State, tokens: Array, requested: Array) -> tuple[State, Array, Array]:
        loss, gradients = jax.value_and_grad(mean_loss)(state.weights, tokens, recipe)
        loss, gradients = jax.lax.pmean((loss, gradients), "data")
        return adamw_update(state, gradients, recipe.lr), loss, jax.lax.pmax(requested, "data")[0]

    replicated, sharded = PartitionSpec(), PartitionSpec("data")
    inputs = (replicated, sharded, sharded)
    # With check_vma, JAX would sum the gradients too: the mean above is the only exchange between devices.
    on_all = jax.shard_map(step_on_device, mesh=mesh, in_specs=inputs, out_specs=replicated, check_vma=False)
    return jax.jit(on_all, donate_argnums=0)


# ---- checkpoints


def checkpoints(directory: Path) -> list[Path]:
    """The checkpoints, oldest first."""
    return sorted(directory.glob("step-*.npz"))


def save(state: State, recipe: Recipe, directory: Path) -> Path:
    """Save a checkpoint. It gets its name once it is on disk, so a file of that name is complete."""
    buffer = io.BytesIO()
    arrays = {field.name: np.asarray(getattr(state, field.name)) for field in fields(state)}
    np.savez(buffer, recipe=json.dumps(asdict(recipe)), **arrays)
    content = buffer.getvalue()
    unfinished, path = directory / ".unfinished", directory / f"step-{int(state.step):08}.npz"
    with unfinished.open("wb") as file:
        file.write(content + hashlib.sha256(content).digest())
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    sync_directory(directory)
    delete_older(path)
    return path


def sync_directory(directory: Path) -> None:
    """Write the names in the directory to disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def delete_older(saved: Path) -> None:
    """Keep the saved checkpoint and the one before it. Delete newer ones too: they were damaged."""
    found = checkpoints(saved.parent)
    kept = [path for path in found if path <= saved][-KEPT_CHECKPOINTS:]
    for path in found:
        if path not in kept:
            path.unlink()


def newest_state(recipe: Recipe, directory: Path) -> State:
    """The state of the newest intact checkpoint; the initial state without checkpoints.

    Raises CannotTrainError if all are damaged, or if the newest has another recipe.
    """
    found = checkpoints(directory)
    for path in reversed(found):
        content = path.read_bytes()
        if hashlib.sha256(content[:-DIGEST_BYTES]).digest() == content[-DIGEST_BYTES:]:
            return state_of(path, content, recipe)
        log(f"{path} is damaged, trying the one before it")
    if found:
        raise CannotTrainError(f"all checkpoints in {directory} are damaged: delete them to start from the beginning")
    return initial_state(recipe)


def state_of(path: Path, content: bytes, recipe: Recipe) -> State:
    """The state in this checkpoint, as numpy arrays. Raises CannotTrainError if it has another recipe."""
    arrays = dict(np.load(io.BytesIO(content)))
    saved, declared = json.loads(str(arrays.pop("recipe"))), asdict(recipe)
    differences = [
        f"{key} {saved.get(key)}, not {declared[key]}" for key in declared if saved.get(key) != declared[key]
    ]
    if differences:
        raise CannotTrainError(
            f"{path} was made with {'; '.join(differences)}: "
            "use the same settings, or set another CHECKPOINT_DIR to start a new run"
        )
    return State(**arrays)


# ---- losses


def open_losses(path: Path, step: int) -> TextIO:
    """The file of losses, truncated after this step: an interrupted run may be ahead of its checkpoint."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("rb") as file:
        os.truncate(path, sum(len(line) for line in takewhile(lambda line: is_until(line, step), file)))
    return path.open("a")


def is_until(line: bytes, step: int) -> bool:
    """True for a complete line of this step or an earlier one."""
    number = line.partition(b" ")[0]
    return line.endswith(b"\n") and number.isdigit() and int(number) <= step


def line_of(step: int, loss: Array) -> str:
    """'17 40490fdb 3.141593': the step, the 32 bits of the loss, the loss in decimal."""
    value = np.float32(loss)
    return f"{step} {value.view(np.uint32):08x} {value:.6f}\n"


# ---- the run


class CheckpointRequest:
    """Whether this process got SIGUSR1, which requests a checkpoint. The handler only sets `pending`."""

    def __init__(self) -> None:
        self.pending = False
        signal.signal(signal.SIGUSR1, self._handle)

    def _handle(self, *_: object) -> None:
        self.pending = True


def log(sentence: str) -> None:
    """Print a line in the first process only."""
    if jax.process_index() == 0:
        print(f"train.py: {sentence}", flush=True)


def join(environment: Mapping[str, str]) -> None:
    """Connect to the other processes, if any: those that srun started, or WORLD_SIZE of which this is RANK."""
    if "JAX_COORDINATOR_ADDRESS" not in environment:
        return
    variables = {"num_processes": "WORLD_SIZE", "process_id": "RANK"}
    jax.distributed.initialize(
        **{key: int(environment[name]) for key, name in variables.items() if name in environment}
    )
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # JAX replaces the handler, and a requeued job would keep training


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a process starts from."""

    text: np.ndarray
    recipe: Recipe
    state: State


def prepare(options: argparse.Namespace) -> Start:
    """Load what this process starts from. Raises CannotTrainError."""
    text = read_text(options.data)
    recipe = recipe_of(options, text)
    options.checkpoints.mkdir(parents=True, exist_ok=True)
    return Start(text=text, recipe=recipe, state=newest_state(recipe, options.checkpoints))


def recipe_of(options: argparse.Namespace, text: np.ndarray) -> Recipe:
    """The recipe of these options. Raises CannotTrainError if they contradict each other or the data."""
    if options.width % options.heads:
        raise CannotTrainError(f"--width: {options.width} is not a multiple of --heads {options.heads}")
    if len(text) <= options.length:
        raise CannotTrainError(
            f"--data: {len(text)} bytes; --length {options.length} needs at least {options.length + 1}"
        )
    names = ("seed", "lr", "batch", "length", "width", "layers", "heads", "dtype")
    return Recipe(
        devices=jax.device_count(), text=identity_of(text), **{name: getattr(options, name) for name in names}
    )


def prepare_all(options: argparse.Namespace) -> Start:
    """Prepare in all processes. If one fails, all raise CannotTrainError; the first failed one gives the reason."""
    problem, start = CannotTrainError(), None
    try:
        start = prepare(options)
    except CannotTrainError as error:
        problem = error
    steps = np.ravel(process_allgather(start.state.step if start else np.int32(-1))).tolist()
    if start is None or -1 in steps:
        raise problem if jax.process_index() == steps.index(-1) else CannotTrainError()
    if len(set(steps)) > 1:
        found = ", ".join(map(str, sorted(set(steps))))
        raise CannotTrainError(
            f"processes found checkpoints of different steps ({found}): CHECKPOINT_DIR must be on a shared file system"
        )
    return start


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What the first process writes for all: a line for each step, and checkpoints."""

    losses: TextIO
    directory: Path
    recipe: Recipe

    def add(self, step: int, loss: Array) -> None:
        """Write the line of a step."""
        self.losses.write(line_of(step, loss))
        self.losses.flush()

    def save(self, state: State, *, requested: bool) -> None:
        """Save a checkpoint. If it was requested, create the file that the job script waits for."""
        os.fsync(self.losses.fileno())  # the losses are on disk before their checkpoint
        log(f"saved {save(state, self.recipe, self.directory)}")
        if requested and "CHECKPOINT_SAVED" in os.environ:
            Path(os.environ["CHECKPOINT_SAVED"]).touch()


def train(options: argparse.Namespace, request: CheckpointRequest) -> None:
    """Train to the last step, from the newest checkpoint or from the beginning."""
    start = prepare_all(options)
    devices, process, first = jax.devices(), jax.process_index(), int(start.state.step)
    local = [number for number, device in enumerate(devices) if device.process_index == process]
    mesh = Mesh(np.array(devices), ("data",))
    replicated, sharded = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    run_step = compile_step(start.recipe, mesh)
    state = jax.tree.map(lambda array: jax.make_array_from_process_local_data(replicated, array), start.state)
    records = None
    if process == 0:
        losses = open_losses(options.losses or Path(f"{options.checkpoints}.losses"), first)
        records = Records(losses=losses, directory=options.checkpoints, recipe=start.recipe)
    recorder = StepRecorder(rank=process) if StepRecorder else None
    log(f"{len(devices)} x {devices[0].device_kind}, {jax.process_count()} processes, continues after step {first}")
    for step in range(first + 1, options.steps + 1):
        began = time.perf_counter()
        tokens = np.concatenate([share_of_batch(start.text, start.recipe, step, device) for device in local])
        read_s = time.perf_counter() - began
        requests = np.full(len(local), request.pending, np.int32)
        inputs = (jax.make_array_from_process_local_data(sharded, array) for array in (tokens, requests))
        state, loss, any_request = run_step(state, *inputs)
        requested = bool(any_request)  # the same in all processes, so they agree on the step
        log(f"step {step} of {options.steps}, loss {float(loss):.4f}")
        if requested:
            request.pending = False
            print(f"train.py: process {process} agrees to a checkpoint after step {step}", flush=True)
        if recorder:
            recorder.add_data_wait(read_s)
            recorder.end_step(step=step, tokens=tokens[:, 1:].size, loss=float(loss))
        if records:
            records.add(step, loss)
            if requested or step % options.every == 0 or step == options.steps:
                with recorder.checkpoint() if recorder else nullcontext():
                    records.save(state, requested=requested)
        time.sleep(options.nap)


def positive(text: str) -> int:
    """The number, if it is at least 1. Raises ValueError, which argparse reports."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """The options by name."""
    parser = argparse.ArgumentParser(description="Train a small language model on bytes.")
    directory = Path(os.environ.get("CHECKPOINT_DIR", "checkpoints/train"))
    parser.add_argument("--data", type=Path, help="text to learn (default: synthetic)")
    parser.add_argument("--steps", type=positive, default=200, help="train until this step (default: %(default)s)")
    parser.add_argument("--every", type=positive, default=50, help="steps between checkpoints (default: %(default)s)")
    parser.add_argument(
        "--checkpoints", type=Path, default=directory, help="directory (default: $CHECKPOINT_DIR, or checkpoints/train)"
    )
    parser.add_argument("--losses", type=Path, help="file with a line for each step (default: CHECKPOINTS.losses)")
    parser.add_argument("--nap", type=float, default=0.0, help="seconds to wait after each step (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=3e-3, help="learning rate after warm-up (default: %(default)s)")
    parser.add_argument("--batch", type=positive, default=8, help="sequences per device (default: %(default)s)")
    parser.add_argument("--length", type=positive, default=64, help="bytes of a sequence (default: %(default)s)")
    parser.add_argument("--width", type=positive, default=64, help="width of the model (default: %(default)s)")
    parser.add_argument("--layers", type=positive, default=2, help="layers of the model (default: %(default)s)")
    parser.add_argument("--heads", type=positive, default=4, help="attention heads (default: %(default)s)")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="computation type (default: %(default)s)"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Return 0 after training and 1 if the run cannot train; argparse exits with 2."""
    request = CheckpointRequest()  # first: connecting the processes takes seconds, and a signal may come then
    options = parse_options(arguments)
    join(os.environ)
    try:
        train(options, request)
    except CannotTrainError as error:
        if str(error):
            print(f"train.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
