"""Asking a machine's tools, all at once and none for long. What they said is judged elsewhere.

nvidia-smi hangs where a GPU is lost, at times in the kernel, where no signal reaches it: so nobody waits for its end.
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

from corral.agent.health.gpus import QUERY, ROWS_QUERY

QUICK_S = 4.0  # of one tool; the whole quick check stays below five seconds
_LEVEL_1_S = 45.0  # slurmd ends a HealthCheckProgram after 60 seconds
_LEVEL_2_S = 600.0  # level 2 takes minutes. Source: DCGM user guide, "DCGM Diagnostics", table of run levels
_REAPED_S = 0.1  # a program that can be killed is gone by then
_SYSFS = Path("/sys/class")
_MOUNTS = Path("/proc/self/mounts")


class Tool(Enum):
    """What can be asked: the file that stands for its output, and its name in a sentence."""

    GPUS = ("nvidia-smi.csv", "nvidia-smi")
    ROWS = ("remapped-rows.csv", "nvidia-smi")
    NEURON = ("neuron-ls.json", "neuron-ls")
    EFA = ("infiniband.txt", "sysfs")
    DISKS = ("disks.txt", "sysfs")
    MOUNTS = ("mounts.txt", "/proc/mounts")
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
        """What it is called."""
        return self.value[1]


QUICK = frozenset({Tool.GPUS, Tool.ROWS, Tool.NEURON, Tool.EFA, Tool.DISKS, Tool.MOUNTS, Tool.CLOCK})
_COMMANDS: Mapping[Tool, tuple[str, ...]] = {
    Tool.GPUS: ("nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv"),
    Tool.ROWS: ("nvidia-smi", f"--query-remapped-rows={','.join(ROWS_QUERY)}", "--format=csv"),
    Tool.NEURON: ("neuron-ls", "--json-output"),
    Tool.CLOCK: ("chronyc", "tracking"),
    Tool.KERNEL: ("journalctl", "--dmesg", "--boot", "--output=short-iso", "--no-pager", "--grep=NVRM: Xid"),
    Tool.LINKS: ("nvidia-smi", "nvlink", "--status"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool said. `hung`: it said nothing in `after_s` seconds. `absent`: this machine does not have it."""

    text: str = ""
    hung: bool = False
    absent: bool = False
    after_s: float = QUICK_S


class Probe(Protocol):
    """A machine that can be asked; `SystemProbe` and `BoxProbe` are."""

    def ask(self, tool: Tool, level: int) -> Answer | None:
        """What the tool says, None where it is not asked on such a machine. `level`: of DCGM's diagnostic."""
        ...


class SystemProbe:
    """The machine itself. `path`: where its tools are looked for; None is the environment's."""

    def __init__(self, sysfs: Path = _SYSFS, mounts: Path = _MOUNTS, path: str | None = None) -> None:
        self._mounts = mounts
        self._path = path
        self._listings: Mapping[Tool, Callable[[], Iterable[str]]] = {
            Tool.EFA: lambda: _ports(sysfs / "infiniband"),
            Tool.DISKS: lambda: _models(sysfs / "block"),
        }

    def ask(self, tool: Tool, level: int) -> Answer | None:
        """What the tool says."""
        if tool is Tool.MOUNTS:
            return Answer(text=self._mounts.read_text(encoding="utf-8", errors="replace"))
        if tool in self._listings:
            return Answer(text="\n".join(self._listings[tool]()))
        if tool is Tool.DIAGNOSTIC:
            bound_s = _LEVEL_1_S if level == 1 else _LEVEL_2_S
            return _run(("dcgmi", "diag", "--run", str(level), "--json"), bound_s, self._path)
        return _run(_COMMANDS[tool], QUICK_S, self._path)


class BoxProbe:
    """A machine of the AWS in a box: its devices are names only, so that tools are asked of files.

    `shown`: the directory that holds outputs by the names of `Tool`, where somebody made the machine sick; a file
    `NAME.hangs` makes a tool hang. Mounts are the machine's own.
    """

    def __init__(self, shown: Path = Path("/box/health"), system: Probe | None = None) -> None:
        self._shown = shown
        self._system = system or SystemProbe()

    def ask(self, tool: Tool, level: int) -> Answer | None:
        """What the file says, or the machine where it can."""
        if (self._shown / f"{tool.file}.hangs").exists():
            return Answer(hung=True)
        file = self._shown / tool.file
        if file.exists():
            return Answer(text=file.read_text(encoding="utf-8"))
        return self._system.ask(tool, level) if tool in (Tool.MOUNTS, Tool.CLOCK) else None


def read_all(probe: Probe, tools: Iterable[Tool], *, level: int = 1) -> Mapping[Tool, Answer]:
    """What the tools say, asked side by side; those that are not asked on such a machine are left out."""
    asked = sorted(tools, key=lambda tool: tool.name)
    with ThreadPoolExecutor(max(1, len(asked))) as pool:
        answers: Sequence[Future[Answer | None]] = [pool.submit(probe.ask, tool, level) for tool in asked]
        found = zip(asked, [answer.result() for answer in answers], strict=True)
        return {tool: answer for tool, answer in found if answer is not None}


def _run(command: Sequence[str], bound_s: float, path: str | None) -> Answer:
    """What the command said. One that hangs is killed and left: in the kernel it may not even end then."""
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
        return Answer(absent=True)
    began = time.monotonic()
    try:
        text, _ = started.communicate(timeout=bound_s)
    except subprocess.TimeoutExpired:
        started.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(_REAPED_S)
        if started.stdout:
            started.stdout.close()
        return Answer(hung=True, after_s=time.monotonic() - began)
    return Answer(text=text)


def _ports(directory: Path) -> Iterable[str]:
    for device in sorted(directory.iterdir()) if directory.is_dir() else ():
        try:
            yield f"{device.name} {(device / 'ports/1/state').read_text(encoding='utf-8').strip()}"
        except OSError:
            yield device.name


def _models(directory: Path) -> Iterable[str]:
    for disk in sorted(directory.glob("nvme*")):
        try:
            yield f"{disk.name} {(disk / 'device/model').read_text(encoding='utf-8').strip()}"
        except OSError:
            continue
