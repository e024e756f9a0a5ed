"""The tables of docs/reliability.md, from the data. The text outside the marks is written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.docs.tables import filled, table

from corral.catalog.accelerators.accelerators import accelerators
from corral.catalog.accelerators.failure_rates import failure_studies, measured_jobs
from corral.catalog.accelerators.power import effectiveness, server_of
from corral.catalog.aws.storage import checkpoint_states, host_copies
from corral.catalog.loader.data_files import read_toml

_MINUTE_S = 60


def fill(page: str) -> str:
    """Return the page with new tables."""
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
    """Published times from an interruption until the job computes again."""
    for name, row in sorted(read_toml("reliability.toml")["recovery"].items()):
        most = f"{row['most_s'] / _MINUTE_S:g}"
        minutes = f"{row['least_s'] / _MINUTE_S:g} to {most}" if "least_s" in row else f"under {most}"
        yield {"who": name, "minutes": minutes, "what": row["what"], "source": row["source"]}


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
    """Published servers; the power of an accelerator alone is in its catalog row."""
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
