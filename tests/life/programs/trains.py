"""A small training program whose processes really wait: for a loader, for each other, for a checkpoint on its disk.

Each option is one property of a program or of its data; without options, it is healthy. Nothing is computed.
"""

# ruff: noqa: T201  # its output is what users' programs print
from __future__ import annotations

import argparse
import contextlib
import os
import queue
import random
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BATCH_BYTES = 64 * 1024
NUMBERS = {
    "seconds": 40.0,
    "step": 0.06,
    "noise": 0.03,
    "vary": 0.0,
    "warm-up": 0.0,
    "warm-up-steps": 0,
    "imbalance": 0.0,
    "first-batch": 0.2,
    "produce": 0.02,
    "late": 0.0,
    "late-every": 0,
    "slow-loader-of": -1,  # a rank, or all
    "exchange": 0.001,
    "evaluation": 0.0,
    "evaluate-every": 0,
    "saving": 0.2,
    "save-mb": 1.0,
    "save-every": 0,
    "fail-at": 100,
    "fail-in": -1,  # a rank, or all
}
FLAGS = ("in-pieces", "all-evaluate", "all-save", "save-behind", "unrecorded", "no-communication")
TEXTS = ("fail", "fail-text", "data", "show", "show-once", "mark")
PIECE_S = 0.004  # work in pieces: a process that is stopped for a while is later by that


class OutOfMemoryError(RuntimeError):
    """PyTorch's error has this name."""


class NoRecorder:
    """For programs that do not know corral_step."""

    batches, start_step, end_step = staticmethod(iter), staticmethod(lambda: None), staticmethod(lambda **_: None)
    communication = checkpoint = staticmethod(contextlib.nullcontext)

    def __enter__(self) -> NoRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        return


class Group:
    """The processes of the job. Each step, the first of them awaits all, and then answers whether they go on."""

    def __init__(self, rank: int, size: int, exchange_s: float, seconds: float) -> None:
        self._exchange_s, self._seconds = exchange_s, seconds
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if rank == 0:
            listening = socket.create_server(("", address[1]), reuse_port=True)
            threading.Thread(target=self._answer, args=(listening, size), daemon=True).start()
        self._socket = self._connect(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self) -> bool:
        """Wait for all processes; true if there is another step."""
        self._socket.sendall(b"g")
        answer = self._socket.recv(1)
        if not answer:
            raise RuntimeError("Connection closed by peer")
        return answer == b"y"

    def _answer(self, listening: socket.socket, size: int) -> None:
        peers = [listening.accept()[0] for _ in range(size)]
        ends_at = time.monotonic() + self._seconds
        while all(peer.recv(1) for peer in peers):
            time.sleep(self._exchange_s)  # the network
            goes_on = time.monotonic() < ends_at
            for peer in peers:
                peer.sendall(b"y" if goes_on else b"n")
        for peer in peers:
            peer.close()

    @staticmethod
    def _connect(address: tuple[str, int]) -> socket.socket:
        deadline = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(address, 30)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


class Loader:
    """A thread that reads batches ahead, four at most. Each takes `produce_s`, and every `every`-th `late_s` more."""

    def __init__(self, options: argparse.Namespace, is_slow: bool) -> None:
        self._options, self._is_slow = options, is_slow
        self._ready: queue.Queue[bytes] = queue.Queue(4)
        threading.Thread(target=self._read, daemon=True).start()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self._ready.get()

    def _read(self) -> None:
        number, options = 0, self._options
        time.sleep(options.first_batch)
        while True:
            number += 1
            batch = read_batch(Path(options.data), number) if options.data else bytes(8)
            if self._is_slow:
                time.sleep(options.produce)
                if options.late_every and number % options.late_every == 0:
                    time.sleep(options.late)
            self._ready.put(batch)


def read_batch(file: Path, number: int) -> bytes:
    with file.open("rb", buffering=0) as data:
        os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        data.seek(number * BATCH_BYTES % (os.fstat(data.fileno()).st_size - BATCH_BYTES))
        return data.read(BATCH_BYTES)


def work(seconds: float, in_pieces: bool) -> None:
    """What the device does."""
    if not in_pieces:
        time.sleep(seconds)
        return
    for _ in range(round(seconds / PIECE_S)):
        time.sleep(PIECE_S)


def save(megabytes: float, seconds: float, rank: int) -> None:
    """Write a checkpoint, flush it and rename it; `seconds`: what its state takes to be collected and serialized."""
    time.sleep(seconds)
    directory = Path(os.environ["CHECKPOINT_DIR"])
    new = directory / f".new-{rank}"
    with new.open("wb") as out:
        for _ in range(round(megabytes * 8)):
            out.write(bytes(128 * 1024))
        out.flush()
        os.fsync(out.fileno())
    new.rename(directory / f"state-{rank}")


def fail(kind: str, grow: list[bytearray], text: str) -> None:
    """End as programs with a mistake do, or with too little memory."""
    match kind:
        case "exit":
            sys.exit(3)
        case "key":
            raise KeyError("labels")
        case "state":
            raise RuntimeError(text)
        case "import":
            __import__("flash_attn")
        case "cuda":
            raise OutOfMemoryError(text)
        case "host":  # a real MemoryError: the process may have 400 MB of addresses
            resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
            grow.append(bytearray(1 << 30))
        case "grow":  # until somebody ends it
            for _ in range(100):
                grow.append(bytearray(os.urandom(1 << 20) * 8))
                time.sleep(0.2)


def train(options: argparse.Namespace, rank: int, size: int, steps: Any) -> None:
    noise, common = random.Random(rank + 1), random.Random(7)
    group = Group(rank, size, options.exchange, options.seconds)
    loader = Loader(options, options.slow_loader_of in (-1, rank))
    grow: list[bytearray] = []
    saving: list[threading.Thread] = []
    began = time.monotonic()
    for number, _ in enumerate(steps.batches(loader), 1):
        length = 1 + common.uniform(-options.vary, options.vary)  # all sequences of a step are as long
        seconds = options.step * length * max(0.1, noise.gauss(1, options.noise))
        if number <= options.warm_up_steps:
            seconds += options.warm_up
        if options.imbalance and rank >= size // 2:
            seconds *= 1 + options.imbalance
        work(seconds, options.in_pieces)
        if options.fail and number == options.fail_at and options.fail_in in (-1, rank):
            fail(options.fail, grow, options.fail_text)
        if options.no_communication:
            goes_on = group.exchange()
        else:
            with steps.communication():
                goes_on = group.exchange()
        steps.end_step(tokens=4096, loss=2 + 3 / number)
        if rank == 0 and number % 50 == 0:
            print(f"step {number} loss {2 + 3 / number:.3f} {time.monotonic() - began:.0f} s", flush=True)
        if not goes_on:
            break
        if options.evaluate_every and number % options.evaluate_every == 0 and (options.all_evaluate or rank == 0):
            time.sleep(options.evaluation)
        if options.save_every and number % options.save_every == 0 and (options.all_save or rank == 0):
            wanted = (options.save_mb, options.saving, rank)
            if options.save_behind:
                saving = [one for one in saving if one.is_alive()]
                saving.append(threading.Thread(target=save, args=wanted))
                saving[-1].start()
            else:
                with steps.checkpoint():
                    save(*wanted)
    for one in saving:
        one.join()
    if rank == 0:
        print("training is over", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, default in NUMBERS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    for name in FLAGS:
        parser.add_argument(f"--{name}", action="store_true")
    for name in TEXTS:
        parser.add_argument(f"--{name}", default="")
    return parser.parse_known_args(arguments)[0]  # Megatron's script adds its own


def main() -> None:
    options = parse(sys.argv[1:])
    rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    if options.show_once and "SLURM_RESTART_COUNT" not in os.environ:
        print(Path(options.show_once).read_text(), flush=True)
    if options.show:
        print(Path(options.show).read_text(), flush=True)
    if options.fail_text.startswith("@"):
        options.fail_text = Path(options.fail_text[1:]).read_text().strip()
    if options.fail == "import":
        fail("import", [], "")
    if options.unrecorded:
        recorder: Any = NoRecorder()
    else:
        import corral_step

        recorder = corral_step.StepRecorder()
    with recorder as steps:
        train(options, rank, size, steps)


if __name__ == "__main__":
    main()
