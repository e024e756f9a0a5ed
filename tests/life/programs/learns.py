"""Another small training program, whose processes send real bytes to each other. Nothing is computed.

Without options it is healthy. Each option is a property of the program, of its data or of the machine that it is on.
"""

# ruff: noqa: T201  # its output is what users' programs print
from __future__ import annotations

import argparse
import contextlib
import os
import queue
import random
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

NUMBERS = {
    "seconds": 45.0,
    "step": 0.09,
    "noise": 0.02,
    "own-lengths": 0.0,  # each process has a sequence of another length
    "slow-by": 1.0,
    "slow-local": -1,  # a process of that node, or all
    "one-in-turn": 0.0,  # in each step, another process is longer by this share
    "compile": 0.0,
    "compile-at": 0,  # again in this step
    "longer-after": 0,  # steps, after which each takes 1.8 times as long
    "micro-batches": 1,
    "pause": 0.0,
    "pause-every": 0,
    "workers": 2,  # 0: the loop itself reads
    "decode": 0.02,
    "first-batch": 0.3,
    "epoch": 0,
    "new-epoch": 0.0,
    "gradient-kb": 64,
    "link-mb": 200.0,  # a second
    "messages": 1,
    "latency": 0.0005,
    "evaluate": 0.0,
    "evaluate-every": 0,
    "save": 0.0,
    "save-every": 0,
    "save-kb": 256,
    "shards": 1,
    "leak-mb": 0.0,  # a second, in a child
    "memory-share": 0.0,  # of the GPU, as PyTorch would report it
    "retries-every": 0,
    "retries-at-first": 0,
    "nan-at": 0,
    "fail-at": 150,
    "fail-rank": -1,
}
FLAGS = ("pieces", "all-save", "save-behind", "unrecorded", "sleeps")
TEXTS = ("slow-node", "cold-node", "data", "show", "show-again", "mark", "fail", "fail-text")
GPU_BYTES = 42_298_834_944  # torch.cuda.get_device_properties of an A100 with 40 GB
PIECE_S, CHUNK = 0.005, 32 * 1024


class NotRecorded:
    batches, start_step, end_step = staticmethod(iter), staticmethod(lambda: None), staticmethod(lambda **_: None)
    communication = checkpoint = staticmethod(contextlib.nullcontext)

    def __enter__(self) -> NotRecorded:
        return self

    def __exit__(self, *_: object) -> None:
        return


class Peers:
    """Each message of a step goes to the first process, at the speed of the link, and the answer to all."""

    def __init__(self, options: argparse.Namespace, rank: int, size: int) -> None:
        self._options, self._bytes = options, options.gradient_kb * 1024
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if rank == 0:
            listening = socket.create_server(("", address[1]), reuse_port=True, backlog=64)
            threading.Thread(target=self._serve, args=(listening, size), daemon=True).start()
        self._socket = self._reach(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def reduce(self) -> bool:
        """Exchange all messages of a step; whether there is another step."""
        goes_on = True
        for _ in range(self._options.messages):
            left = self._bytes
            while left:
                size = min(left, CHUNK)
                self._socket.sendall(bytes(size))
                time.sleep(size / (self._options.link_mb * 1e6))
                left -= size
            answer = self._socket.recv(1)
            if not answer:
                raise RuntimeError("[Rank] Connection closed by remote peer")
            goes_on = answer == b"+"
        return goes_on

    def _serve(self, listening: socket.socket, size: int) -> None:
        peers = [listening.accept()[0] for _ in range(size)]
        ends_at, number = time.monotonic() + self._options.seconds, 0
        while all(self._whole(peer) for peer in peers):
            time.sleep(self._options.latency)
            number += 1
            is_last = number % self._options.messages == 0 and time.monotonic() > ends_at
            for peer in peers:
                peer.sendall(b"-" if is_last else b"+")
        for peer in peers:
            peer.close()

    def _whole(self, peer: socket.socket) -> bool:
        left = self._bytes
        while left:
            got = peer.recv(min(left, 1 << 20))
            if not got:
                return False
            left -= len(got)
        return True

    @staticmethod
    def _reach(address: tuple[str, int]) -> socket.socket:
        ends_at = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(address, 30)
            except OSError:
                if time.monotonic() > ends_at:
                    raise
                time.sleep(0.2)


class Batches:
    """Batches that workers read ahead, or none does. Each epoch starts its workers again."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        is_warm = options.cold_node not in ("", os.environ["SLURMD_NODENAME"])
        self._decode = 0.02 if is_warm else options.decode
        self._number = 0

    def __iter__(self) -> Iterator[bytes]:
        time.sleep(self._options.first_batch)
        while True:
            yield from self._epoch(self._options.epoch or 1 << 30)
            time.sleep(self._options.new_epoch)

    def _epoch(self, length: int) -> Iterator[bytes]:
        if not self._options.workers:
            for _ in range(length):
                yield self._read()
            return
        ready: queue.Queue[bytes] = queue.Queue(2 * self._options.workers)
        stopped = threading.Event()
        for _ in range(self._options.workers):
            threading.Thread(target=self._work, args=(ready, stopped), daemon=True).start()
        for _ in range(length):
            yield ready.get()
        stopped.set()

    def _work(self, ready: queue.Queue[bytes], stopped: threading.Event) -> None:
        while not stopped.is_set():
            batch = self._read()
            while not stopped.is_set():
                with contextlib.suppress(queue.Full):
                    ready.put(batch, timeout=0.5)
                    break

    def _read(self) -> bytes:
        time.sleep(self._decode)
        if not self._options.data:
            return b""
        self._number += 1
        with Path(self._options.data).open("rb", buffering=0) as data:
            os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size = os.fstat(data.fileno()).st_size
            data.seek(self._number * 7919 * 4096 % (size - 32768))
            return data.read(32768)


class Saver:
    """Checkpoints: collected for some seconds, then written and flushed, in a number of files."""

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        self._options, self._rank = options, rank
        self._behind: threading.Thread | None = None

    def save(self) -> None:
        if not self._options.save_behind:
            self._write()
            return
        self.wait()
        self._behind = threading.Thread(target=self._write)
        self._behind.start()

    def wait(self) -> None:
        if self._behind:
            self._behind.join()

    def _write(self) -> None:
        time.sleep(self._options.save)
        for shard in range(self._options.shards):
            new = Path(os.environ["CHECKPOINT_DIR"]) / f".part-{self._rank}-{shard}"
            with new.open("wb") as out:
                out.write(bytes(self._options.save_kb * 1024))
                out.flush()
                os.fsync(out.fileno())
            new.rename(new.with_name(f"part-{self._rank}-{shard}"))


def pretend_torch(options: argparse.Namespace, step: list[int]) -> None:
    """What corral_step reads of PyTorch: no GPU is here."""

    def stats(_: int) -> dict[str, int]:
        retries = step[0] // options.retries_every if options.retries_every else 0
        return {
            "allocated_bytes.all.peak": int(GPU_BYTES * (options.memory_share - 0.02)),
            "reserved_bytes.all.peak": int(GPU_BYTES * options.memory_share),
            "num_alloc_retries": retries + (options.retries_at_first if step[0] else 0),
        }

    torch = ModuleType("torch")
    torch.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        is_initialized=lambda: True,
        current_device=lambda: 0,
        memory_stats=stats,
        get_device_properties=lambda _: SimpleNamespace(total_memory=GPU_BYTES),
    )
    sys.modules["torch"] = torch


def leak(megabytes_a_second: float) -> None:
    """A worker process whose memory grows."""
    if os.fork():
        return
    held = []
    while True:
        held.append(os.urandom(1 << 20))
        time.sleep(1 / megabytes_a_second)


def fail(words: str, text: str) -> None:
    """`MODULE.NAME`: an error of that class, as a traceback shows it."""
    module, _, name = words.rpartition(".")
    raise type(name, (RuntimeError,), {"__module__": module or "builtins"})(text)


class Work:
    """What the device does in a step, as long as the options say."""

    def __init__(self, options: argparse.Namespace, rank: int, size: int) -> None:
        self._options, self._rank, self._size = options, rank, size
        self._own, self._common = random.Random(rank + 100), random.Random(3)
        is_there = options.slow_node == os.environ["SLURMD_NODENAME"]
        is_it = options.slow_local in (-1, int(os.environ["SLURM_LOCALID"]))
        self._factor = options.slow_by if is_there and is_it else 1.0

    def seconds(self, number: int) -> float:
        options = self._options
        found = options.step * self._factor * max(0.2, self._own.gauss(1, options.noise))
        found *= 1 + self._own.uniform(-options.own_lengths, options.own_lengths)
        if self._common.randrange(self._size) == self._rank:
            found *= 1 + options.one_in_turn
        if options.longer_after and number > options.longer_after:
            found *= 1.8
        if options.pause_every and (number + 17 * self._rank) % options.pause_every == 0:
            found += options.pause
        return found + (options.compile if number in (1, options.compile_at) else 0)

    def run(self, number: int) -> None:
        seconds = self.seconds(number)
        if not self._options.pieces:
            time.sleep(seconds)
            return
        for _ in range(round(seconds / PIECE_S)):
            time.sleep(PIECE_S)


def train(options: argparse.Namespace, rank: int, size: int, steps: Any) -> None:
    count = [0]
    if options.memory_share:
        pretend_torch(options, count)
    peers, saver, work = Peers(options, rank, size), Saver(options, rank), Work(options, rank, size)
    batches = steps.batches(Batches(options))
    for number in range(1, 1 << 30):
        count[0] = number
        for _ in range(options.micro_batches):
            next(batches)
            work.run(number)
        if number == options.fail_at and options.fail_rank in (-1, rank):
            if options.fail:
                fail(options.fail, options.fail_text)
            if options.leak_mb:
                leak(options.leak_mb)
        with steps.communication():
            goes_on = peers.reduce()
        loss = float("nan") if options.nan_at and number >= options.nan_at else 9 / (number + 8)
        steps.end_step(tokens=2048, loss=loss)
        if rank == 0 and number % 25 == 0:
            print(f"iter {number}: loss {loss:.4f}", flush=True)
        if not goes_on:
            break
        if options.evaluate_every and number % options.evaluate_every == 0:
            time.sleep(options.evaluate)
            steps.start_step()
        if options.save_every and number % options.save_every == 0 and (options.all_save or rank == 0):
            with steps.checkpoint():
                saver.save()
    saver.wait()


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, default in NUMBERS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    for name in FLAGS:
        parser.add_argument(f"--{name}", action="store_true")
    for name in TEXTS:
        parser.add_argument(f"--{name}", default="")
    return parser.parse_known_args(arguments)[0]


def main() -> None:
    options = parse(sys.argv[1:])
    rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    if options.show:
        print(Path(options.show).read_text(), flush=True)
    if options.fail_text.startswith("@"):
        options.fail_text = Path(options.fail_text[1:]).read_text().strip()
    if options.sleeps:
        time.sleep(options.seconds)
        return
    if options.unrecorded:
        recorder: Any = NotRecorded()
    else:
        import corral_step

        recorder = corral_step.StepRecorder()
    with recorder as steps:
        train(options, rank, size, steps)


if __name__ == "__main__":
    main()
