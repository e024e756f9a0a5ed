"""A second set of jobs for `corral diagnose`, chosen by somebody who had not read its rules.

Of each faulty one: what must be found, on which node, and why an engineer would call it that. What it must be was
written before the first run, and is not fitted to what is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hidden_runs import HOME, Run

from agent.health_fixtures import RECORDED

ARCHIVE = f"{HOME}/archive"  # a file system whose requests take as long as a busy one's
# In units of the file system: seconds a request, and MiB a second.
ARCHIVE_REQUEST_S, ARCHIVE_MIB = 0.15, 6.0
GPU_NODES = ("train-5", "train-6", "train-7", "train-8")

# What nvidia-smi answers. Headings and the other values are those of the recordings of one H200: loaded (gpu-burn) and
# idle. The number and the bus of each GPU are counted on.
_HEADINGS, _LOADED = (RECORDED / "h200-loaded/gpu-load.csv").read_text().strip().splitlines()
_IDLE = (RECORDED / "h200/gpu-load.csv").read_text().strip().splitlines()[1]
_COLUMNS = (
    *("index", "bus", "utilization", "used", "total", "temperature", "draw", "clock"),
    *("power_cap", "hw_thermal", "sw_thermal", "brake"),
)


def _gpu(index: int, row: str = _LOADED, /, **changed: str) -> str:
    values = row.split(", ")
    values[:2] = str(index), f"00000000:{0x10 + index:02X}:00.0"
    for name, value in changed.items():
        values[_COLUMNS.index(name)] = value
    return ", ".join(values)


def _node(rows: Sequence[str]) -> str:
    return "\n".join([_HEADINGS, *rows]) + "\n"


_BUSY = _node([_gpu(one) for one in range(8)])
# Changed: fields of a GPU whose cooling fails, one of eight. Its power falls with its clock.
_HOT_ONE = {"temperature": "89", "draw": "412.10 W", "clock": "1140 MHz", "sw_thermal": "Active"}
_THERMAL = _node([_gpu(one, **(_HOT_ONE if one == 3 else {})) for one in range(8)])
# Changed: the power supply asserts the brake for the whole machine; half the clock, half the power.
_BRAKED = {"draw": "301.77 W", "clock": "990 MHz", "brake": "Active", "temperature": "46"}
_BRAKE = _node([_gpu(one, **_BRAKED) for one in range(8)])
# Changed: one GPU at its hardware's limit of heat, which divides its clock.
_BURNING = {"temperature": "95", "draw": "188.34 W", "clock": "495 MHz", "hw_thermal": "Active"}
_HW_THERMAL = _node([_gpu(one, **(_BURNING if one == 6 else {})) for one in range(8)])
# Changed: at the limit of their power, as most GPUs are in a large matrix product; clocks a little lower.
_CAPPED = {"draw": "699.21 W", "clock": "1770 MHz", "temperature": "68", "power_cap": "Active"}
_CAP = _node([_gpu(one, **_CAPPED) for one in range(8)])
# Changed: warm, at full clocks; corrected errors of memory, which need nothing.
_WARM = _node([_gpu(one, temperature=str(76 + one), draw="655.02 W") for one in range(8)]).replace(
    ", 0, 0\n", ", 3, 0\n", 1
)
# Changed: an evaluation on the processors; memory stays in use.
_EVALUATES = _node([_gpu(one, temperature="44", draw="121.60 W", utilization="0 %") for one in range(8)])
_TWO_OF_EIGHT = _node([_gpu(0), _gpu(1), *[_gpu(one, _IDLE) for one in range(2, 8)]])
# Changed: a process holds memory of each GPU, and uses none.
_HELD = _node([_gpu(one, _IDLE, used="61342 MiB", draw="118.40 W", clock="1980 MHz") for one in range(8)])


# --- what programs print, from public reports

# CoSeR issue 10, likeatingcake, 2025-01-10: an A100 with 40 GB.
TORCH_OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 80.00 GiB. GPU 0 has a total capacity of 39.50 GiB of which 25.24 GiB is "
    "free. Including non-PyTorch memory, this process has 14.25 GiB memory in use. Of the allocated memory 12.87 GiB "
    "is allocated by PyTorch, and 912.01 MiB is reserved by PyTorch but unallocated. If reserved but unallocated "
    "memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
# jax-ml/jax issue 22755, Yangcn1995, 2024-07-30.
XLA_OUT_OF_MEMORY = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3743729664 bytes."
# Visual-AI/3DRS issue 7, HyperbolicCurve, 2025-08-01.
WORKER_KILLED = "DataLoader worker (pid 108439) is killed by signal: Killed. "
# PKU-YuanGroup/Open-Sora-Plan issue 386, ZXMMD.
NCCL_OUT_OF_MEMORY = "ins-7df6eojsifuykig9:3018451:3018451 [0] enqueue.cc:1085 NCCL WARN Cuda failure 'out of memory'"
# flatironinstitute/nemos issue 345, arturoptophys, 2025-05-18: XLA tries another algorithm.
NO_FAILURE = (
    "2025-05-18 21:59:55.405578: W external/xla/xla/tsl/framework/bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out "
    "of memory trying to allocate 3.37GiB with freed_by_count=0. The caller indicates that this is not a failure, but "
    "this may mean that there could be performance gains if more memory were available.\n"
)
# NVIDIA/nccl issue 226, Luo-Liang: machines of EC2 without the plugin.
NO_PLUGIN = """\
ip-172-31-8-153:45343:45343 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so).
ip-172-31-1-93:45294:45294 [0] NCCL INFO NET/IB : No device found.
ip-172-31-5-237:45266:45266 [0] NCCL INFO NET/Socket : Using [0]ens3:172.31.5.237<0>
"""
# NVIDIA/nccl issue 1597, Co1lin: two machines with H200.
LIBFABRIC = """\
8h200-3:6310:6318 [0] NCCL INFO NET/OFI Selected Provider is efa (found 16 nics)
8h200-2:6831:6840 [0] NCCL INFO NET/OFI Creating one domain per process
8h200-2:6831:6840 [0] NCCL INFO PROFILER/Plugin: Could not find: libnccl-profiler.so.
8h200-2:6831:6840 [0] NCCL INFO Using network Libfabric
"""
# NVIDIA/nccl issue 527, mralexis1.
CHANNELS_OF_EFA = """\
NCCL INFO Channel 00 : 0[101c0] -> 8[101c0] [receive] via NET/AWS Libfabric/0/GDRDMA
NCCL INFO Channel 01 : 0[101c0] -> 8[101c0] [send] via NET/AWS Libfabric/0/GDRDMA
NCCL INFO Channel 00 : 9[101d0] -> 8[101c0] via P2P/IPC/read
NCCL INFO Connected all trees
"""
TIP = "If you see CUDA out of memory, reduce --per_device_train_batch_size or add --gradient_checkpointing.\n"
TEXTS: Mapping[str, str] = {
    "torch": TORCH_OUT_OF_MEMORY,
    "xla": XLA_OUT_OF_MEMORY,
    "worker": WORKER_KILLED,
    "nccl": NCCL_OUT_OF_MEMORY,
    "no-failure": NO_FAILURE,
    "batch-finder": f"trying micro-batch 64\ntorch.OutOfMemoryError: {TORCH_OUT_OF_MEMORY}\nusing micro-batch 32\n",
    "no-plugin": NO_PLUGIN,
    "libfabric": LIBFABRIC + CHANNELS_OF_EFA,
    "tip": TIP,
    "shape": "mat1 and mat2 shapes cannot be multiplied (4096x1024 and 4096x1024)",
    "memory-key": "Memory-efficient attention needs a head dimension of at most 128, not 192",
    "no-checkpoint": "[Errno 2] No such file or directory: '/scratch/checkpoints/step-12000/state.pt'",
}


def _learns(options: str = "", /, **more: object) -> Run:
    return Run(options=options, program="learns.py", **more)  # type: ignore[arg-type]


def _runs(options: str, after_s: float, /, **more: object) -> Run:
    return _learns(f"--seconds 900 {options}", until="runs", after_s=after_s, **more)


HARMLESS_VARIABLES = (
    "NCCL_DEBUG=WARN NCCL_SOCKET_IFNAME=^docker,lo NCCL_CUMEM_ENABLE=0 NCCL_NVLS_ENABLE=0 NCCL_BUFFSIZE=8388608 "
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 FI_EFA_FORK_SAFE=1 FI_EFA_USE_HUGE_PAGE=0 "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)

HEALTHY: Mapping[str, Run] = {
    "two nodes": _learns(),
    "one node, four processes": _learns(nodes=1, tasks=4),
    "four nodes": _learns(nodes=4, tasks=1),
    "one process": _learns(nodes=1, tasks=1),
    "steps of four seconds": _learns("--step 4 --seconds 60"),
    "steps of twenty milliseconds": _learns("--step 0.02 --decode 0.005", tasks=1),
    "three seconds": _learns("--seconds 3"),
    "looked at soon": _runs("", 6),
    "compiles for twelve seconds, and again": _learns("--compile 12 --compile-at 90 --seconds 60"),
    "each process has other lengths": _learns("--own-lengths 0.12"),
    "experts that are busy in turn": _learns("--one-in-turn 0.1"),
    "longer sequences later": _learns("--longer-after 200"),
    "collects garbage": _learns("--pause 0.25 --pause-every 100"),
    "accumulates": _learns("--micro-batches 6 --gradient-kb 512 --link-mb 20"),
    "shares of a tenth for the network": _learns("--gradient-kb 256 --link-mb 30"),
    "evaluates": _learns("--evaluate 3 --evaluate-every 120"),
    "saves a little": _learns("--save 0.3 --save-every 150 --all-save"),
    "saves behind": _learns("--save 3 --save-every 120 --save-behind"),
    "a first batch after fifteen seconds": _learns("--first-batch 15 --seconds 60"),
    "epochs with a short pause": _learns("--epoch 150 --new-epoch 0.6"),
    "loader that just keeps up": _learns("--decode 0.15 --workers 2"),
    "a little slower on one node": _learns("--slow-node train-2 --slow-by 1.04", where="train-[1-2]"),
    "loss is not a number": _learns("--nan-at 100"),
    "cancelled after a while": _learns("--seconds 900", until="cancelled", after_s=30),
    "a sweep": _learns(script="sweep", nodes=1, tasks=1, sbatch="--mem=2G --array=1-2"),
    "shapes do not fit": _learns(f"--fail builtins.RuntimeError --fail-text @{HOME}/shape.txt --fail-rank 1"),
    "attention of memory": _learns(f"--fail builtins.ValueError --fail-text @{HOME}/memory-key.txt"),
    "no checkpoint": _learns(f"--fail builtins.FileNotFoundError --fail-at 1 --fail-text @{HOME}/no-checkpoint.txt"),
    "looks for the largest batch": _learns(f"--show {HOME}/batch-finder.txt"),
    "XLA tries another way": _runs(f"--show {HOME}/no-failure.txt", 35),
    "a tip in its output, and a mistake": _learns(
        f"--unrecorded --show {HOME}/tip.txt --fail builtins.KeyError --fail-text labels"
    ),
    "usual variables": _learns(variables=HARMLESS_VARIABLES),
    "over EFA, by its log": _learns(f"--show {HOME}/libfabric.txt", variables="NCCL_DEBUG=INFO"),
    "one node without the plugin": _learns(
        f"--show {HOME}/no-plugin.txt", nodes=1, tasks=2, variables="NCCL_DEBUG=INFO"
    ),
    "memory that is nearly full": _runs("--memory-share 0.97", 50),
    "memory that was emptied at first": _runs("--memory-share 0.95 --retries-at-first 2", 50),
    "held": _learns(sbatch="--mem=2G --hold", until="waits"),
    "at the limit of power": _runs(
        "--step 0.25", 170, tasks=8, gpus=8, where="train-[5-6]", readings={"train-5": [_CAP], "train-6": [_CAP]}
    ),
    "warm": _runs("--step 0.25", 170, nodes=1, tasks=8, gpus=8, where="train-7", readings={"train-7": [_WARM]}),
    "evaluates, and its GPUs rest": _runs(
        "--step 0.25 --evaluate 6 --evaluate-every 300",
        170,
        nodes=1,
        tasks=8,
        gpus=8,
        where="train-8",
        readings={"train-8": [*[_BUSY] * 5, _EVALUATES, *[_BUSY] * 8]},
    ),
}

FAULTY: Mapping[str, Run] = {
    "the loop reads by itself": _learns(
        "--workers 0 --decode 0.05 --step 0.07",
        fault="data-loader",
        why="no worker reads ahead, so each step waits 50 ms for data and computes for 70",
    ),
    "workers start in each epoch": _learns(
        "--epoch 30 --new-epoch 1.4 --step 0.07",
        fault="data-loader",
        why="short epochs, and workers that do not persist: 1.4 s of each 3.5 wait for the loader",
    ),
    "one worker for two": _learns(
        "--workers 1 --decode 0.11 --step 0.08",
        fault="data-loader",
        why="decoding takes longer than a step: more than a quarter of the time is a wait for data",
    ),
    "cold cache of one node": _learns(
        "--cold-node train-2 --decode 0.3 --workers 2 --step 0.08",
        where="train-[1-2]",
        fault="data-loader",
        why="the processes of one node wait for their data half of the time, and the others for them",
    ),
    "data in the archive": _learns(
        f"--data {ARCHIVE}/shards --decode 0.001 --workers 1",
        fault="data-loader",
        why="batches come from a slow file system, its own files are elsewhere: what is seen is the wait for data",
    ),
    "a thin link": _learns(
        "--gradient-kb 1024 --link-mb 18 --step 0.07",
        fault="communication",
        why="a MB of gradients takes longer than half of a step, on each process alike",
    ),
    "many small messages": _runs(
        "--messages 16 --gradient-kb 4 --latency 0.003 --step 0.08",
        60,
        fault="communication",
        why="as tensor parallelism over a slow network: each step waits for sixteen exchanges, a third of its time",
    ),
    "a machine that stumbles": _runs(
        "--pieces --mark stumbles --step 0.1",
        70,
        nodes=4,
        tasks=2,
        where="train-[1-4]",
        fault="straggler",
        on="train-3",
        why="processes of one of four machines do not run for 60 of each 200 ms; the others wait",
    ),
    "one slow GPU of eight": _learns(
        "--slow-node train-2 --slow-local 1 --slow-by 1.3",
        tasks=4,
        gpus=4,
        where="train-[1-2]",
        fault="straggler",
        on="train-2",
        why="one process needs 30 % longer in each step, and seven wait for it",
    ),
    "a slower node of three": _runs(
        "--slow-node train-4 --slow-by 1.2 --step 0.12",
        70,
        nodes=3,
        where="train-[2-4]",
        fault="straggler",
        on="train-4",
        why="a fifth of each step of four processes is a wait for those of train-4",
    ),
    "left from a test": _learns(
        variables="NCCL_NET=Socket",
        fault="wrong-network-settings",
        why="NCCL uses TCP, and EFA is there",
    ),
    "libfabric over TCP": _learns(
        variables="FI_PROVIDER=tcp NCCL_DEBUG=WARN",
        fault="wrong-network-settings",
        why="the plugin is to use libfabric's provider for TCP instead of EFA's",
    ),
    "through the processor's memory": _learns(
        variables="NCCL_NET_GDR_LEVEL=LOC",
        fault="wrong-network-settings",
        why="LOC never uses GPUDirect RDMA, so each message is copied by way of the processor's memory",
    ),
    "no plugin": _learns(
        f"--show {HOME}/no-plugin.txt",
        variables="NCCL_DEBUG=INFO",
        fault="wrong-network-settings",
        why="two nodes, and NCCL's log shows that it found no plugin and uses the socket of ens3",
    ),
    "PyTorch's memory": _learns(
        f"--unrecorded --fail torch.OutOfMemoryError --fail-text @{HOME}/torch.txt --fail-rank 2",
        fault="out-of-memory",
        why="the traceback in the output of a program that records nothing",
    ),
    "XLA's memory": _learns(
        f"--fail jaxlib.xla_extension.XlaRuntimeError --fail-text @{HOME}/xla.txt --fail-rank 0",
        fault="out-of-memory",
        why="XLA's name for it is RESOURCE_EXHAUSTED",
    ),
    "a worker that grows": _learns(
        "--leak-mb 20 --fail-rank 3",
        sbatch="--mem=220M",
        fault="out-of-memory",
        why="a child of one process leaks until Slurm ends the job for its memory",
    ),
    "a worker is killed": _learns(
        f"--fail builtins.RuntimeError --fail-text @{HOME}/worker.txt --fail-rank 1",
        fault="out-of-memory",
        why="the kernel kills a loader's worker where the node's memory is full; PyTorch reports only the signal",
    ),
    "NCCL's memory": _learns(
        f"--fail builtins.RuntimeError --fail-text @{HOME}/nccl.txt --fail-rank 0 --unrecorded",
        fault="out-of-memory",
        why="PyTorch holds all of the GPU's memory, and NCCL's own allocation fails",
    ),
    "saves too often": _runs(
        "--save 2.2 --save-every 80 --step 0.07",
        70,
        fault="checkpoint-stalls",
        why="the first process saves for 2.2 s after 5.6 s of steps, and all others wait for it",
    ),
    "saves behind, and too slowly": _learns(
        "--save 7 --save-every 45 --save-behind --all-save --seconds 70",
        fault="checkpoint-stalls",
        why="a save in the background takes longer than the steps until the next, which waits for it: 40 % of the time",
    ),
    "a sixth for checkpoints": _learns(
        "--save 1.3 --save-every 100 --all-save --step 0.07 --seconds 70",
        fault="checkpoint-stalls",
        why="all processes stand still for 1.3 of each 8.3 s",
    ),
    "a job in the archive": _learns(
        f"--data {ARCHIVE}/shards --decode 0.001 --workers 1 --seconds 60",
        directory=ARCHIVE,
        fault="slow-file-system",
        why="it waits for its data, and each small write of its own takes 0.3 s as well",
    ),
    "checkpoints in the archive": _learns(
        "--save-every 60 --shards 4 --save-kb 256 --all-save --seconds 70",
        directory=ARCHIVE,
        fault="slow-file-system",
        why="a MB in four files takes two seconds to save, because each request to the file system takes 0.15",
    ),
    "memory at its limit": _runs(
        "--memory-share 0.985 --retries-every 8",
        60,
        fault="memory-bound",
        why="PyTorch's allocator empties its cache every eighth step to go on",
    ),
    "one hot GPU of sixteen": _runs(
        "--step 0.25 --slow-node train-6 --slow-local 3 --slow-by 1.35",
        170,
        tasks=8,
        gpus=8,
        where="train-[5-6]",
        readings={"train-5": [_BUSY], "train-6": [_THERMAL]},
        fault="throttled-gpu",
        on="train-6",
        why="one GPU has lowered its clocks for its heat; that its process is late is what follows",
    ),
    "the power brake": _runs(
        "--step 0.25",
        170,
        nodes=1,
        tasks=8,
        gpus=8,
        where="train-7",
        readings={"train-7": [_BRAKE]},
        fault="throttled-gpu",
        on="train-7",
        why="the machine's power supply halves the clocks of all eight; no process is later than another",
    ),
    "burns, and records nothing": _runs(
        "--unrecorded --step 0.25",
        170,
        nodes=1,
        tasks=8,
        gpus=8,
        where="train-7",
        readings={"train-7": [_HW_THERMAL]},
        fault="throttled-gpu",
        on="train-7",
        why="one GPU is at the hardware's limit of heat, and nothing but its readings shows it",
    ),
    "two GPUs of eight": _runs(
        "",
        170,
        nodes=1,
        tasks=2,
        gpus=8,
        where="train-8",
        readings={"train-8": [_TWO_OF_EIGHT]},
        fault="idle-gpus",
        on="train-8",
        why="two processes on a node with eight GPUs that are all the job's",
    ),
    "forgotten": _runs(
        "--sleeps",
        170,
        nodes=1,
        tasks=1,
        gpus=8,
        where="train-8",
        readings={"train-8": [_HELD]},
        fault="idle-gpus",
        on="train-8",
        why="a process holds the memory of eight GPUs and uses none, as a notebook that its user left",
    ),
}
