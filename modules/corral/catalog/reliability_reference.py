"""The tables of docs/reliability.md, from the data. What stands outside its marks is written by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from corral.catalog.accelerators import accelerators
from corral.catalog.power import effectiveness, server_of
from corral.catalog.reference import filled, table
from corral.catalog.reliability import failure_studies, measured_jobs, recovery_times
from corral.catalog.storage import checkpoint_states, host_copies

_MINUTE_S = 60


def fill(page: str) -> str:
    """The page with the tables that its marks name."""
    return filled(
        page,
        {
            "studies": table(_studies()),
            "jobs": table(_jobs()),
            "recovery": table(_recovery()),
            "states": table(_states()),
            "copies": table(_copies()),
            "servers": table(_servers()),
            "pue": table(_effectiveness()),
        },
    )


def _studies() -> Iterator[Mapping[str, str]]:
    for study in failure_studies():
        causes = ", ".join(f"{cause} {count}" for cause, count in study.causes.items())
        yield {
            "cluster": study.name,
            "accelerator": study.accelerator,
            "for 1,000 node-days": f"{study.per_node_day * 1000:.2f}",
            "for 1,000 accelerators and day": f"{study.per_accelerator_h * 24 * 1000:.2f}",
            "by cause": causes or "-",
            "source": study.source,
        }


def _jobs() -> Iterator[Mapping[str, str]]:
    for job in measured_jobs():
        yield {"accelerators": f"{job.accelerators:,}", "hours": f"{job.mtbf_h:,g}", "source": job.source}


def _recovery() -> Iterator[Mapping[str, str]]:
    for one in recovery_times():
        most = f"{one.most_s / _MINUTE_S:g}"
        minutes = f"under {most}" if one.least_s is None else f"{one.least_s / _MINUTE_S:g} to {most}"
        yield {"who": one.name, "minutes": minutes, "what": one.what, "source": one.source}


def _states() -> Iterator[Mapping[str, str]]:
    for state in checkpoint_states().values():
        yield {
            "state": state.name,
            "weights": f"{state.weights:g}",
            "master copy": f"{state.master:g}",
            "moments": f"{state.moments:g}",
            "bytes": f"{state.bytes_per_parameter:g}",
            "source": state.source,
        }


def _copies() -> Iterator[Mapping[str, str]]:
    for copy in host_copies():
        yield {"families": " ".join(copy.families), "GB/s": f"{copy.gb_per_s:g}", "source": copy.source}


def _servers() -> Iterator[Mapping[str, str]]:
    """Those that somebody published; each accelerator's own power is in its catalogue row."""
    found = {server.name: server for model in accelerators().values() if (server := server_of(model))}
    for server in found.values():
        if not server.estimated:
            yield {
                "server": server.name,
                "accelerators": str(server.accelerators),
                "kW": f"{server.most_w / 1000:g}",
                "of it host": f"{server.host_w / 1000:g}",
                "source": server.source,
            }


def _effectiveness() -> Iterator[Mapping[str, str]]:
    for operator, part in effectiveness().items():
        yield {"operator": operator, "PUE": f"{part.value:.2f}", "source": part.source}


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")
