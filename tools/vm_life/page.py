"""docs/vm-life.md and its picture, as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from tools.vm_life.boot_times import BootPart, BootTimes
from tools.vm_life.progress import Found, StepResult

_WIDTH, _LEFT, _ROW, _TICK_S = 720, 110, 20, 60.0
_HEADER = ("| step | seconds | on | found |", "|---|---:|---|---|")
_INSTALLED = ("linux-image-cloud-amd64", "systemd", "cloud-init", "openssh-server")


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The whole run. `packages`: the versions of the image's packages, by name. `date`: YYYY-MM-DD."""

    date: str
    cores: int
    accelerator: str
    packages: Mapping[str, str]
    slurm: str
    found: Found


def page(result: RunResult, picture: str) -> Iterator[str]:
    """The lines of the page. `picture`: the name of its file, beside the page."""
    kernel = next(name for name in result.packages if re.fullmatch(r"linux-image-\d.*", name))
    versions = ", ".join(f"{name} {result.packages[name]}" for name in _INSTALLED if name in result.packages)
    yield "# A cluster on virtual machines"
    yield ""
    yield f"Written by `make vm-life` on {result.date}, on {result.cores} cores; accelerator: {result.accelerator}."
    yield "A row with another date is of a run of some steps (`ARGS='--only WORD'`)."
    yield f"Each machine boots {kernel} from nothing but its user data. The image has {versions};"
    yield f"{result.slurm}, MariaDB, munge and NFS are installed at boot."
    yield ""
    yield "## Steps"
    yield from _HEADER
    yield from (_row(step) for step in result.found.steps)
    yield ""
    yield "## Boots"
    yield "From the start of the kernel, as systemd and apt recorded it. With the accelerator tcg, cores are"
    yield "emulated: a machine of EC2 boots faster."
    yield ""
    yield f"![Parts of each boot over seconds]({picture})"
    yield ""
    yield "| machine | part | began at (s) | took (s) |"
    yield "|---|---|---:|---:|"
    boots = [machine.boot for machine in result.found.machines]
    for boot in boots:
        for part in boot.parts:
            yield f"| {boot.machine} | {part.name} | {part.began_s:,.0f} | {part.ended_s - part.began_s:,.1f} |"
    yield ""
    for boot in boots:
        yield f"{boot.machine}: {boot.analyzed or 'systemd has no summary'}. Slowest units: {', '.join(boot.blamed)}."
        yield ""
    yield "## Memory"
    yield "| machine | its guest uses (MiB) | its QEMU has (MiB) |"
    yield "|---|---:|---:|"
    for machine in result.found.machines:
        yield f"| {machine.boot.machine} | {machine.guest_mib:,} | {machine.process_mib:,} |"


def with_steps(text: str, taken: Sequence[StepResult], order: Sequence[str]) -> str:
    """The page of an earlier run, with the rows of steps that were taken anew; its other rows stay.

    `order`: the titles of all steps; a row with another title is dropped.
    """
    before, _, rest = text.partition("\n".join(_HEADER) + "\n")
    lines = rest.splitlines()
    count = next((number for number, line in enumerate(lines) if not line.startswith("| ")), len(lines))
    rows = {line.strip("| ").split(" | ")[0]: line for line in lines[:count]} | {one.title: _row(one) for one in taken}
    kept = [rows[title] for title in order if title in rows]
    return before + "\n".join([*_HEADER, *kept, *lines[count:]]) + "\n"


def _row(step: StepResult) -> str:
    return f"| {step.title} | {step.seconds:,.0f} | {step.date} | {step.found.replace('|', ', ')} |"


def boot_picture(boots: Sequence[BootTimes]) -> str:
    """The parts of each boot as bars over a shared axis of seconds, as SVG."""
    end = max(part.ended_s for boot in boots for part in boot.parts)
    scale = (_WIDTH - _LEFT - 60) / end
    lines: list[str] = []
    y = 20.0
    for boot in boots:
        lines.append(f'<text x="4" y="{y + 14:.0f}" font-weight="bold">{escape(boot.machine)}</text>')
        y += _ROW
        for part in boot.parts:
            lines.extend(_bar(part, y, scale))
            y += _ROW
        y += _ROW / 2
    ticks = [_tick(number * _TICK_S, y, scale) for number in range(int(end // _TICK_S) + 1)]
    height = y + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'font-family="sans-serif" font-size="12">\n<title>Parts of each boot over seconds</title>\n'
        f'<rect width="{_WIDTH}" height="{height:.0f}" fill="#ffffff"/>\n' + "\n".join((*ticks, *lines)) + "\n</svg>\n"
    )


def _bar(part: BootPart, y: float, scale: float) -> Iterator[str]:
    x, width = _LEFT + part.began_s * scale, max(1.0, (part.ended_s - part.began_s) * scale)
    yield f'<text x="{_LEFT - 6}" y="{y + 14:.0f}" text-anchor="end">{escape(part.name)}</text>'
    yield f'<rect x="{x:.1f}" y="{y + 3:.0f}" width="{width:.1f}" height="14" fill="#2f6db5"/>'
    yield f'<text x="{x + width + 4:.1f}" y="{y + 14:.0f}">{part.ended_s - part.began_s:,.0f} s</text>'


def _tick(seconds: float, bottom: float, scale: float) -> str:
    x = _LEFT + seconds * scale
    return (
        f'<line x1="{x:.1f}" y1="16" x2="{x:.1f}" y2="{bottom:.0f}" stroke="#dddddd"/>'
        f'<text x="{x:.1f}" y="{bottom + 14:.0f}" text-anchor="middle" fill="#555555">{seconds:.0f}</text>'
    )
