"""Trains a small language model on bytes, on all processes of a job, and goes on exactly where it was interrupted.

    python train.py                                       one process with all devices of this machine
    sbatch --nodes=2 jax.sbatch train.py --steps 1000     as many as the job has, on a cluster made by corral

The model is a decoder-only transformer. Each device has a copy of it and a share of the batch; the gradients are
averaged over all devices after each step. A checkpoint is saved after every --every steps, at the end, and when SIGUSR1
asks for one. A run that finds checkpoints in $CHECKPOINT_DIR continues from the newest: on as many devices its losses
are those of a run that was never interrupted, bit for bit.
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
from dataclasses import asdict, dataclass, fields
from itertools import accumulate, takewhile
from math import prod
from pathlib import Path
from typing import TextIO

# The order of additions decides a sum's last bits. On a CPU one thread has one order; a GPU can be told to keep to one.
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

WARMUP_STEPS = 10
MEAN_DECAY, SQUARE_DECAY, WEIGHT_DECAY, EPSILON = 0.9, 0.95, 0.1, 1e-8
KEPT_CHECKPOINTS = 2
DIGEST_BYTES = 32  # SHA-256
MADE_SENTENCES = 2000

Step = Callable[["State", Array, Array], tuple["State", Array, Array]]


class CannotTrainError(Exception):
    """What keeps this run from training, in a sentence for a person; empty where another process says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that the losses depend on. A run continues a checkpoint of its own recipe only. `text` names what is read."""

    devices: int
    text: str
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
    """What a step changes, the same on every device: all weights, and AdamW's means of gradients and of their squares.

    Each is one vector, so that one exchange between the devices averages all gradients.
    """

    step: Array
    weights: Array
    mean: Array
    square: Array


# ---- the text


def read_text(file: Path | None) -> np.ndarray:
    """The bytes to learn, as uint8[n]: of the file, or made here, the same each time."""
    if not file:
        return np.frombuffer(made_text().encode(), np.uint8)
    try:
        return np.memmap(file, np.uint8, "r")
    except OSError as error:
        raise CannotTrainError(f"--data: {file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CannotTrainError(f"--data: {file} is empty") from error


def made_text() -> str:
    """Sentences with some order in them, so that there is something to learn."""
    random = np.random.default_rng(0)
    users = ("ada", "grace", "alan", "barbara")
    ends = ("finished", "was requeued", "ran out of time", "saved and went on")

    def sentence(job: int) -> str:
        nodes, user, end = random.integers(1, 17), random.integers(len(users)), random.integers(len(ends))
        return f"job {job} of {users[user]} had {nodes} nodes with {8 * nodes} GPUs and {ends[end]}.\n"

    return "".join(sentence(job) for job in range(MADE_SENTENCES))


def name_of(text: np.ndarray) -> str:
    """What tells this text from others, without reading all of a long one."""
    return f"{len(text)} bytes, sha256 of the first MiB {hashlib.sha256(text[: 2**20].tobytes()).hexdigest()[:12]}"


def share_of_batch(text: np.ndarray, recipe: Recipe, step: int, device: int) -> np.ndarray:
    """What the device reads in this step, int32[batch, length + 1]: it depends on nothing else."""
    random = np.random.default_rng((recipe.seed, step, device))
    starts = random.integers(len(text) - recipe.length, size=recipe.batch)
    return text[starts[:, None] + np.arange(recipe.length + 1)].astype(np.int32)


# ---- the model


def shapes(recipe: Recipe) -> Mapping[str, tuple[int, int]]:
    """The model's matrices in the order in which the vector of all weights has them."""
    width = recipe.width
    of_a_layer = {
        "attention_in": (width, 3 * width),
        "attention_out": (width, width),
        "mlp_in": (width, 4 * width),
        "mlp_out": (4 * width, width),
    }
    layers = {f"{name}_{layer}": shape for layer in range(recipe.layers) for name, shape in of_a_layer.items()}
    return {"bytes": (256, width), "positions": (recipe.length, width), **layers}


def matrices(weights: Array, recipe: Recipe) -> Mapping[str, Array]:
    """The vector of all weights as matrices by name."""
    named = shapes(recipe)
    ends = list(accumulate(prod(shape) for shape in named.values()))
    parts = jnp.split(weights, ends[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(named.items(), parts, strict=True)}


def first_state(recipe: Recipe) -> State:
    """The state before the first step, as numpy's arrays."""
    count = sum(prod(shape) for shape in shapes(recipe).values())
    weights = np.random.default_rng(recipe.seed).normal(0, 0.02, count).astype(np.float32)
    return State(step=np.int32(0), weights=weights, mean=np.zeros_like(weights), square=np.zeros_like(weights))


def mean_loss(weights: Array, tokens: Array, recipe: Recipe) -> Array:
    """How badly each byte is foretold from those before it, in nats. Tokens: int32[batch, length + 1]."""
    named = matrices(weights.astype(recipe.dtype), recipe)
    x = named["bytes"][tokens[:, :-1]] + named["positions"]
    for layer in range(recipe.layers):
        x = through_layer(x, named, layer, recipe.heads)
    scores = jax.nn.log_softmax((normed(x) @ named["bytes"].T).astype(jnp.float32))
    return -jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1).mean()


def through_layer(x: Array, named: Mapping[str, Array], layer: int, heads: int) -> Array:
    """x after attention to what came before and after the two-layer network, [batch, length, width]."""
    batch, length, width = x.shape
    projected = (normed(x) @ named[f"attention_in_{layer}"]).reshape(batch, length, 3, heads, width // heads)
    query, key, value = jnp.moveaxis(projected, 2, 0)
    attended = jax.nn.dot_product_attention(query, key, value, is_causal=True)
    x = x + attended.reshape(x.shape) @ named[f"attention_out_{layer}"]
    return x + jax.nn.gelu(normed(x) @ named[f"mlp_in_{layer}"]) @ named[f"mlp_out_{layer}"]


def normed(x: Array) -> Array:
    """x with a root mean square of 1 at each position."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def after_adamw(state: State, gradients: Array, lr: float) -> State:
    """The state after a step of AdamW. Source: Loshchilov and Hutter 2019, algorithm 2."""
    step = state.step + 1
    rate = lr * jnp.minimum(1.0, step / WARMUP_STEPS)
    mean = MEAN_DECAY * state.mean + (1 - MEAN_DECAY) * gradients
    square = SQUARE_DECAY * state.square + (1 - SQUARE_DECAY) * gradients**2
    size = jnp.sqrt(square / (1 - SQUARE_DECAY**step)) + EPSILON
    change = mean / (1 - MEAN_DECAY**step) / size + WEIGHT_DECAY * state.weights
    return State(step=step, weights=state.weights - rate * change, mean=mean, square=square)


def compile_step(recipe: Recipe, mesh: Mesh) -> Step:
    """The function of a step on all devices: (state, tokens, asked) -> (state, loss, whether any process was asked)."""

    def on_a_device(state: State, tokens: Array, asked: Array) -> tuple[State, Array, Array]:
        loss, gradients = jax.value_and_grad(mean_loss)(state.weights, tokens, recipe)
        loss, gradients = jax.lax.pmean((loss, gradients), "data")
        return after_adamw(state, gradients, recipe.lr), loss, jax.lax.pmax(asked, "data")[0]

    everywhere, shared = PartitionSpec(), PartitionSpec("data")
    inputs = (everywhere, shared, shared)
    # Without check_vma JAX adds up no gradients by itself: the average above is the only exchange between devices.
    on_all = jax.shard_map(on_a_device, mesh=mesh, in_specs=inputs, out_specs=everywhere, check_vma=False)
    return jax.jit(on_all, donate_argnums=0)


# ---- checkpoints


def checkpoints(directory: Path) -> list[Path]:
    """The checkpoints, oldest first."""
    return sorted(directory.glob("step-*.npz"))


def save(state: State, recipe: Recipe, directory: Path) -> Path:
    """Saves under another name, and gives it its own once it is on the disk: what bears that is whole."""
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
    keep_the_newest(path)
    return path


def sync_directory(directory: Path) -> None:
    """Brings the names in the directory to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def keep_the_newest(saved: Path) -> None:
    """Removes all but the one just saved and those before it that are kept: what claims to be newer was damaged."""
    found = checkpoints(saved.parent)
    kept = [path for path in found if path <= saved][-KEPT_CHECKPOINTS:]
    for path in found:
        if path not in kept:
            path.unlink()


def newest_state(recipe: Recipe, directory: Path) -> State:
    """The state to start from: of the newest checkpoint that is whole, or the first one if there is no checkpoint.

    Raises CannotTrainError if all are damaged, or if the newest was made by another recipe.
    """
    found = checkpoints(directory)
    for path in reversed(found):
        content = path.read_bytes()
        if hashlib.sha256(content[:-DIGEST_BYTES]).digest() == content[-DIGEST_BYTES:]:
            return state_of(path, content, recipe)
        say(f"{path} is damaged, trying the one before it")
    if found:
        raise CannotTrainError(f"no checkpoint in {directory} is whole: empty it to start from the beginning")
    return first_state(recipe)


def state_of(path: Path, content: bytes, recipe: Recipe) -> State:
    """The state in this checkpoint, as numpy's arrays. Raises CannotTrainError for one of another recipe."""
    arrays = dict(np.load(io.BytesIO(content)))
    made_by = json.loads(str(arrays.pop("recipe")))
    wanted = asdict(recipe)
    differences = [f"{key} {made_by.get(key)}, not {wanted[key]}" for key in wanted if made_by.get(key) != wanted[key]]
    if differences:
        what = "; ".join(differences)
        raise CannotTrainError(
            f"{path} was made with {what}: continue it as it was made, or set another CHECKPOINT_DIR to start anew"
        )
    return State(**arrays)


# ---- losses


def open_losses(path: Path, step: int) -> TextIO:
    """The file of losses, cut after this step: an interrupted run may have gone further than its checkpoint."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("rb") as file:
        os.truncate(path, sum(len(line) for line in takewhile(lambda line: is_until(line, step), file)))
    return path.open("a")


def is_until(line: bytes, step: int) -> bool:
    """True for a whole line of this step or one before it."""
    number = line.partition(b" ")[0]
    return line.endswith(b"\n") and number.isdigit() and int(number) <= step


def line_of(step: int, loss: Array) -> str:
    """'17 40490fdb 3.141593': the step, the loss's 32 bits, and the loss for people."""
    value = np.float32(loss)
    return f"{step} {value.view(np.uint32):08x} {value:.6f}\n"


# ---- the run


class Request:
    """Whether SIGUSR1 has asked this process for a checkpoint. The handler only takes a note."""

    def __init__(self) -> None:
        self.made = False
        signal.signal(signal.SIGUSR1, self.note)

    def note(self, *_: object) -> None:
        """Takes the note."""
        self.made = True


def say(sentence: str) -> None:
    """Prints it, once for all processes."""
    if jax.process_index() == 0:
        print(f"train.py: {sentence}", flush=True)


def join(environment: Mapping[str, str]) -> None:
    """Joins the other processes, if there are any: those that srun started, or WORLD_SIZE, of which this is RANK."""
    if "JAX_COORDINATOR_ADDRESS" not in environment:
        return
    counted = {"num_processes": "WORLD_SIZE", "process_id": "RANK"}
    jax.distributed.initialize(**{key: int(environment[name]) for key, name in counted.items() if name in environment})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # JAX has taken it over, and a requeued job would train on


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a process begins with."""

    text: np.ndarray
    recipe: Recipe
    state: State


def prepare(options: argparse.Namespace) -> Start:
    """What this process would begin with. Raises CannotTrainError."""
    text = read_text(options.data)
    recipe = recipe_of(options, text)
    options.checkpoints.mkdir(parents=True, exist_ok=True)
    return Start(text=text, recipe=recipe, state=newest_state(recipe, options.checkpoints))


def recipe_of(options: argparse.Namespace, text: np.ndarray) -> Recipe:
    """The recipe that these options are. Raises CannotTrainError for one that cannot be."""
    if options.width % options.heads:
        raise CannotTrainError(f"--width: {options.width} is no multiple of --heads, {options.heads}")
    if len(text) <= options.length:
        raise CannotTrainError(f"--data: {len(text)} bytes are too few for --length {options.length}")
    given = ("seed", "lr", "batch", "length", "width", "layers", "heads", "dtype")
    return Recipe(devices=jax.device_count(), text=name_of(text), **{name: getattr(options, name) for name in given})


def begin_together(options: argparse.Namespace) -> Start:
    """What all processes begin with. Raises CannotTrainError in all if one cannot; only the first of those says why."""
    problem, start = CannotTrainError(), None
    try:
        start = prepare(options)
    except CannotTrainError as error:
        problem = error
    steps = np.ravel(process_allgather(start.state.step if start else np.int32(-1))).tolist()
    if start is None or -1 in steps:
        raise problem if jax.process_index() == steps.index(-1) else CannotTrainError()
    if len(set(steps)) > 1:
        seen = ", ".join(map(str, sorted(set(steps))))
        raise CannotTrainError(
            f"processes see other checkpoints than others, of step {seen}: CHECKPOINT_DIR must be shared"
        )
    return start


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What the first process writes for all: a line a step, and checkpoints."""

    losses: TextIO
    directory: Path
    recipe: Recipe

    def add(self, step: int, loss: Array) -> None:
        """Writes the line of this step."""
        self.losses.write(line_of(step, loss))
        self.losses.flush()

    def save(self, state: State, *, asked: bool) -> None:
        """Saves a checkpoint, and tells the job script of one that was asked for."""
        os.fsync(self.losses.fileno())  # no checkpoint without the losses before it
        say(f"saved {save(state, self.recipe, self.directory)}")
        if asked and "CHECKPOINT_SAVED" in os.environ:
            Path(os.environ["CHECKPOINT_SAVED"]).touch()


def train(options: argparse.Namespace, request: Request) -> None:
    """Trains from the newest checkpoint, or from the beginning, to the last step."""
    start = begin_together(options)
    devices, process, first = jax.devices(), jax.process_index(), int(start.state.step)
    mine = [number for number, device in enumerate(devices) if device.process_index == process]
    mesh = Mesh(np.array(devices), ("data",))
    everywhere, shared = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    advance = compile_step(start.recipe, mesh)
    state = jax.tree.map(lambda array: jax.make_array_from_process_local_data(everywhere, array), start.state)
    records = None
    if process == 0:
        losses = open_losses(options.losses or Path(f"{options.checkpoints}.losses"), first)
        records = Records(losses=losses, directory=options.checkpoints, recipe=start.recipe)
    say(f"{len(devices)} x {devices[0].device_kind}, {jax.process_count()} processes, continues after step {first}")
    for step in range(first + 1, options.steps + 1):
        tokens = np.concatenate([share_of_batch(start.text, start.recipe, step, device) for device in mine])
        wishes = np.full(len(mine), request.made, np.int32)
        inputs = (jax.make_array_from_process_local_data(shared, array) for array in (tokens, wishes))
        state, loss, wished = advance(state, *inputs)
        asked = bool(wished)  # the same in all processes, so that they agree on the step
        say(f"step {step} of {options.steps}, loss {float(loss):.4f}")
        if asked:
            request.made = False
            print(f"train.py: process {process} agrees to a checkpoint after step {step}", flush=True)
        if records:
            records.add(step, loss)
            if asked or step % options.every == 0 or step == options.steps:
                records.save(state, asked=asked)
        time.sleep(options.nap)


def positive(text: str) -> int:
    """The number, if it is at least 1. Raises ValueError, which argparse makes a sentence of."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The options, by their names."""
    parser = argparse.ArgumentParser(description="Trains a small language model on bytes.")
    directory = Path(os.environ.get("CHECKPOINT_DIR", "checkpoints/train"))
    parser.add_argument("--data", type=Path, help="text to learn (default: made up)")
    parser.add_argument("--steps", type=positive, default=200, help="train until this step (default: %(default)s)")
    parser.add_argument("--every", type=positive, default=50, help="steps between checkpoints (default: %(default)s)")
    parser.add_argument("--checkpoints", type=Path, default=directory, help="default: $CHECKPOINT_DIR, or %(default)s")
    parser.add_argument("--losses", type=Path, help="file with a line a step (default: CHECKPOINTS.losses)")
    parser.add_argument("--nap", type=float, default=0.0, help="seconds to wait after each step (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--lr", type=float, default=3e-3, help="AdamW's rate after its warm-up (default: %(default)s)")
    parser.add_argument("--batch", type=positive, default=8, help="pieces of text a device (default: %(default)s)")
    parser.add_argument("--length", type=positive, default=64, help="bytes of a piece (default: %(default)s)")
    parser.add_argument("--width", type=positive, default=64, help="default: %(default)s")
    parser.add_argument("--layers", type=positive, default=2, help="default: %(default)s")
    parser.add_argument("--heads", type=positive, default=4, help="default: %(default)s")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="to calculate the loss in")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """0 once it has trained, 1 if it cannot; argparse exits with 2."""
    request = Request()  # before the processes meet, which takes seconds: a signal then counts, too
    options = parsed(arguments)
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
