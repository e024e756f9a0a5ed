"""Query a machine's tools in parallel, each with a timeout. `evaluate` interprets their output.

If a GPU is lost, nvidia-smi may hang in the kernel, where no signal reaches it. So nothing waits for its end.
"""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from corral.agent.health.gpus import LOAD_QUERY, QUERY, ROWS_QUERY
from corral.agent.host.instance_store import instance_store_disks

QUICK_S = 4.0  # per tool; the whole quick check takes less than five seconds
_LEVEL_1_S = 45.0  # slurmd ends a HealthCheckProgram after 60 seconds
_LEVEL_2_S = 600.0  # level 2 takes minutes. Source: DCGM user guide, "DCGM Diagnostics", table of run levels
_REAPED_S = 0.1  # a program that can be killed has ended by then


class Tool(Enum):
    """A source of health data: the file name for its output, and its program's name for messages."""

    GPUS = ("nvidia-smi.csv", "nvidia-smi")
    ROWS = ("remapped-rows.csv", "nvidia-smi")
    NEURON = ("neuron-ls.json", "neuron-ls")
    EFA = ("infiniband.txt", "sysfs")
    LOAD = ("gpu-load.csv", "nvidia-smi")
    EFA_COUNTERS = ("efa-counters.txt", "sysfs")
    DISKS = ("disks.txt", "udev")
    MOUNTS = ("mounts.txt", "/proc/mounts")
    LNET = ("lnet.txt", "lnetctl")
    SCOPE = ("scope.txt", "cgroup2")
    CLOCK = ("chronyc.txt", "chronyc")
    KERNEL = ("kernel.log", "journalctl")
    LINKS = ("nvlink.txt", "nvidia-smi nvlink")
    DIAGNOSTIC = ("dcgmi.json", "dcgmi diag")

    @property
    def file(self) -> str:
        """The name of a file with its output."""
        return self.value[0]

    @property
    def program(self) -> str:
        """Its name in messages."""
        return self.value[1]


QUICK = frozenset(
    {Tool.GPUS, Tool.ROWS, Tool.NEURON, Tool.EFA, Tool.DISKS, Tool.MOUNTS, Tool.LNET, Tool.SCOPE, Tool.CLOCK}
)
_COMMANDS: Mapping[Tool, tuple[str, ...]] = {
    Tool.GPUS: ("nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv"),
    Tool.LOAD: ("nvidia-smi", f"--query-gpu={','.join(LOAD_QUERY)}", "--format=csv"),
    Tool.ROWS: ("nvidia-smi", f"--query-remapped-rows={','.join(ROWS_QUERY)}", "--format=csv"),
    Tool.NEURON: ("neuron-ls", "--json-output"),
    Tool.LNET: ("lnetctl", "net", "show"),
    Tool.CLOCK: ("chronyc", "tracking"),
    # --dmesg: what the kernel wrote. JSON shows where a message begins: users choose text in the middle of others.
    Tool.KERNEL: (
        *("journalctl", "--dmesg", "--boot", "--output=json", "--output-fields=MESSAGE,_TRANSPORT"),
        *("--no-pager", "--grep=^NVRM: Xid"),
    ),
    Tool.LINKS: ("nvidia-smi", "nvlink", "--status"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """The output of a tool. `hung`: it did not end within `after_s` seconds. `absent`: it is not installed."""

    text: str = ""
    hung: bool = False
    absent: bool = False
    after_s: float = QUICK_S


class Probe(Protocol):
    """Queries a machine's tools; `SystemProbe` and `BoxProbe` implement it."""

    def query(self, tool: Tool, level: int) -> ToolOutput | None:
        """The tool's output; None if the machine has no such tool to query. `level`: of DCGM's diagnostic."""
        ...


class SystemProbe:
    """The machine itself. `path`: the PATH for its tools (default: the environment's). `root`: stands for /."""

    def __init__(self, root: Path = Path("/"), path: str | None = None) -> None:
        self._mounts = root / "proc/self/mounts"
        self._slice = root / "sys/fs/cgroup/system.slice"
        self._path = path
        self._listings: Mapping[Tool, Callable[[], Iterable[str]]] = {
            Tool.EFA: lambda: _ports(root / "sys/class/infiniband"),
            Tool.EFA_COUNTERS: lambda: _counters(root / "sys/class/infiniband"),
            Tool.DISKS: lambda: instance_store_disks(root),
        }

    def query(self, tool: Tool, level: int) -> ToolOutput | None:
        """The tool's output."""
        if tool is Tool.MOUNTS:
            return ToolOutput(text=self._mounts.read_text(encoding="utf-8", errors="replace"))
        if tool is Tool.SCOPE:
            # slurmd creates the scope when it starts, with cgroup v2 and under systemd alone.
            if not (self._slice / "slurmd.service/cgroup.events").exists():
                return None
            return ToolOutput(text="\n".join(one.name for one in self._slice.glob("*slurmstepd.scope")))
        if tool in self._listings:
            return ToolOutput(text="\n".join(self._listings[tool]()))
        if tool is Tool.DIAGNOSTIC:
            timeout_s = _LEVEL_1_S if level == 1 else _LEVEL_2_S
            return _run(("dcgmi", "diag", "--run", str(level), "--json"), timeout_s, self._path)
        return _run(_COMMANDS[tool], QUICK_S, self._path)


class BoxProbe:
    """A machine of the box, the local AWS emulator. Its devices are only names, so files replace the tools' output.

    `shown`: the directory of these files, by the names of `Tool`, with which a test or a person makes the machine sick;
    a file `NAME.hangs` makes a tool hang. Mounts are the machine's own.
    """

    def __init__(self, shown: Path = Path("/box/health"), system: Probe | None = None) -> None:
        self._shown = shown
        self._system = system or SystemProbe()

    def query(self, tool: Tool, level: int) -> ToolOutput | None:
        """The file's content, or without a file the machine's own mounts or clock."""
        if (self._shown / f"{tool.file}.hangs").exists():
            return ToolOutput(hung=True)
        file = self._shown / tool.file
        if file.exists():
            return ToolOutput(text=file.read_text(encoding="utf-8"))
        return self._system.query(tool, level) if tool in (Tool.MOUNTS, Tool.CLOCK) else None


def read_all(probe: Probe, tools: Iterable[Tool], *, level: int = 1) -> Mapping[Tool, ToolOutput]:
    """The tools' outputs, queried in parallel. Tools that this kind of machine lacks are left out."""
    queried = sorted(tools, key=lambda tool: tool.name)
    with ThreadPoolExecutor(max(1, len(queried))) as pool:
        answers: Sequence[Future[ToolOutput | None]] = [pool.submit(probe.query, tool, level) for tool in queried]
        found = zip(queried, [answer.result() for answer in answers], strict=True)
        return {tool: answer for tool, answer in found if answer is not None}


def _run(command: Sequence[str], timeout_s: float, path: str | None) -> ToolOutput:
    """Run the command and return its output. Kill one that hangs and do not wait: it may be stuck in the kernel."""
    environment = {"PATH": path} if path else None
    try:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
    except FileNotFoundError:
        return ToolOutput(absent=True)
    began = time.monotonic()
    try:
        text, _ = started.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        started.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(_REAPED_S)
        if started.stdout:
            started.stdout.close()
        return ToolOutput(hung=True, after_s=time.monotonic() - began)
    return ToolOutput(text=text)


def _ports(directory: Path) -> Iterable[str]:
    for device in sorted(directory.iterdir()) if directory.is_dir() else ():
        try:
            yield f"{device.name} {(device / 'ports/1/state').read_text(encoding='utf-8').strip()}"
        except OSError:
            yield device.name


def _counters(directory: Path) -> Iterable[str]:
    """Lines `DEVICE COUNTER VALUE` of the first port of each device; EFA's have one port."""
    for file in sorted(directory.glob("*/ports/1/hw_counters/*")):
        with contextlib.suppress(OSError):  # an interface that is removed
            yield f"{file.parents[3].name} {file.name} {file.read_text(encoding='ascii').strip()}"
