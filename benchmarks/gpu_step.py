"""Time training steps of a Llama-like model on one NVIDIA GPU; print rows that `corral forecast validate` reads.

    python benchmarks/gpu_step.py --micro-batch 1 2 4 >rows.csv
    corral forecast validate --rows rows.csv

It needs PyTorch and nothing of corral. Weights, gradients and both moments of AdamW are fp32, as in PyTorch's FSDP;
matrix products, attention and activations are bf16. The layer and the loss are compiled. The tokens are random, and a
step has one micro-batch. gpu_step.csv and gpu_step_h200.csv have the rows that docs/forecast.md shows.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import pairwise
from statistics import mean, median

# PyTorch's cache of compiled graphs ignores the attention kernel: a run may get another one's (pytorch/pytorch#185449).
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
import torch
from gpu_model import HEAD_DIM, Shape, Weights, apply_layer, mean_loss, new_model, rotary_angles
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

GIB = 2**30
PEAK_FLOPS = 989e12  # H100 SXM and H200, dense bf16. Source: NVIDIA's data sheets, half of the rate with sparsity
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}

Layer = Callable[[Tensor, Weights, Tensor], Tensor]
Loss = Callable[[Tensor, Weights, Tensor], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The seconds of each measured step, and the highest memory in bytes. `context`: outside PyTorch's allocator."""

    seconds: Sequence[float]
    allocated: int
    reserved: int
    context: int


def measure(shape: Shape, micro_batch: int, options: argparse.Namespace) -> Measured:
    """Run the steps and time the last ones."""
    layer: Layer = apply_layer
    loss: Loss = mean_loss
    if not options.eager:
        torch.compiler.reset()
        layer, loss = torch.compile(apply_layer, dynamic=False), torch.compile(mean_loss, dynamic=False)
    if options.recompute == "full":
        layer = partial(checkpoint, layer, use_reentrant=False, preserve_rng_state=False)
    model, angles = new_model(shape), rotary_angles(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def run_step() -> None:
        tokens = torch.randint(shape.vocab, (micro_batch, shape.seq_len + 1), device="cuda")
        x = functional.embedding(tokens[:, :-1], model.ends["embedding"]).bfloat16()
        for weights in model.layers:
            x = layer(x, weights, angles)
        loss(x, model.ends, tokens[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()

    with sdpa_kernel(KERNELS[options.attention]):
        for _ in range(options.warmup):
            run_step()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        return timed(run_step, options.steps)


def timed(run_step: Callable[[], None], steps: int) -> Measured:
    """The times between events on the GPU, which waits for the host only if the host is too slow."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    events[0].record()
    for event in events[1:]:
        run_step()
        event.record()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return Measured(
        seconds=[first.elapsed_time(second) / 1000 for first, second in pairwise(events)],
        allocated=torch.cuda.max_memory_allocated(),
        reserved=torch.cuda.max_memory_reserved(),
        context=total - free - torch.cuda.memory_reserved(),
    )


def row(shape: Shape, micro_batch: int, options: argparse.Namespace, measured: Measured) -> Mapping[str, object]:
    """A row with the columns of corral's training_runs.csv that it has values for."""
    speed = micro_batch * shape.seq_len / mean(measured.seconds)
    modes = [
        options.attention,
        *(["eager"] if options.eager else []),
        *(["full"] if options.recompute == "full" else []),
    ]
    billions = shape.parameters / 1e9
    software = f"PyTorch {torch.__version__}, {options.attention} attention, {'eager' if options.eager else 'compiled'}"
    return {
        "run_id": "-".join(("gpu-step", f"{billions:.1f}b", f"mb{micro_batch}", *modes)),
        "model": f"llama-like-{billions:.1f}b",
        "params_b": f"{billions:.3f}",
        "layers": shape.layers,
        "hidden": shape.hidden,
        "ffn_hidden": shape.ffn,
        "gated_mlp": 1,
        "heads": shape.hidden // HEAD_DIM,
        "kv_heads": shape.hidden // HEAD_DIM,
        "head_dim": HEAD_DIM,
        "vocab": shape.vocab,
        "seq_len": shape.seq_len,
        "accelerator": torch.cuda.get_device_name(),
        "accelerators": 1,
        "tp": 1,
        "pp": 1,
        "cp": 1,
        "dp": 1,
        "sharding": "none",
        "micro_batch": micro_batch,
        "global_batch_seqs": micro_batch,
        "precision": "bf16",
        "recompute": options.recompute,
        "iteration_s": f"{mean(measured.seconds):.4f}",
        "tokens_per_s_per_accelerator": f"{speed:.0f}",
        "tokens_basis": "measured",
        "tflops_per_accelerator": f"{speed * shape.flops_per_token / 1e12:.0f}",
        "tflops_kind": "model",
        "flop_convention": "model: 6 W + 12 L a d s per token (attention not halved)",
        "mfu_pct": f"{speed * shape.flops_per_token / PEAK_FLOPS:.1%}".rstrip("%"),
        "peak_memory_gib": f"{measured.allocated / GIB:.1f}",
        "source": f"benchmarks/gpu_step.py, {date.today()}: {software}",
    }


def summary(measured: Measured) -> str:
    """The spread of the steps, and the memory."""
    seconds, sizes = measured.seconds, (measured.allocated, measured.reserved, measured.context)
    memory = " ".join(
        f"{name} {size / GIB:.2f}" for name, size in zip(("allocated", "reserved", "context"), sizes, strict=True)
    )
    return f"{min(seconds):.4f} to {max(seconds):.4f} s, median {median(seconds):.4f}; GiB: {memory}"


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options by name."""
    parser = argparse.ArgumentParser(description="Time training steps of a Llama-like model on one NVIDIA GPU.")
    parser.add_argument("--layers", type=int, default=24, help="layers (default: %(default)s)")
    parser.add_argument("--hidden", type=int, default=2048, help="width, in multiples of 128 (default: %(default)s)")
    parser.add_argument("--ffn", type=int, default=5632, help="inner width of the MLP (default: %(default)s)")
    parser.add_argument("--vocab", type=int, default=32000, help="tokens of the vocabulary (default: %(default)s)")
    parser.add_argument("--seq-len", type=int, default=4096, help="tokens of a sequence (default: %(default)s)")
    parser.add_argument(
        "--micro-batch", type=int, nargs="+", default=[4], help="sequences, a row for each (default: 4)"
    )
    parser.add_argument("--attention", choices=KERNELS, default="flash", help="kernel (default: %(default)s)")
    parser.add_argument(
        "--recompute",
        choices=("none", "full"),
        default="none",
        help="what each backward pass computes again (default: %(default)s)",
    )
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument("--warmup", type=int, default=20, help="steps before the measured ones (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=30, help="measured steps (default: %(default)s)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure each micro-batch and print its row; omit one that does not fit."""
    options = parse_options(arguments)
    shape = Shape(
        layers=options.layers, hidden=options.hidden, ffn=options.ffn, vocab=options.vocab, seq_len=options.seq_len
    )
    writer = None
    for micro_batch in options.micro_batch:
        try:
            measured = measure(shape, micro_batch, options)
        except torch.OutOfMemoryError as error:
            print(f"micro-batch {micro_batch} does not fit: {error}", file=sys.stderr)
            continue
        finally:
            torch.cuda.empty_cache()
        cells = row(shape, micro_batch, options, measured)
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(cells))
            writer.writeheader()
        writer.writerow(cells)
        sys.stdout.flush()
        print(f"{cells['run_id']}: {summary(measured)}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
