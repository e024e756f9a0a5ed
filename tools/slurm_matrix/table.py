"""The tables of docs/slurm.md, made from the code.

PYTHONPATH=tests .venv/bin/python -m tools.slurm_matrix.table      # writes them
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from corral.catalog.slurm_releases import RELEASES, Release, release_text
from corral.catalog.slurm_settings import Place, Setting, slurm_changes
from corral.model.cluster import ClusterPlan
from corral.render import cluster_files
from corral.spec.rules_slurm_keys import KEPT
from render.slurm_files import records
from slurms import wide

PAGE = Path(__file__).resolve().parents[2] / "docs" / "slurm.md"
VARYING = ("SlurmctldParameters", "CommunicationParameters", "TreeWidth", "PrivateData")
Row = tuple[str, ...]
_END = "<!-- end -->"


def page(text: str) -> str:
    """The page with its tables as the code has them."""
    tables = {"written": written_table(), "kept": kept_table(), "settings": settings_table()}
    for name, table in tables.items():
        text = _filled(text, name, table)
    return text


def _filled(text: str, name: str, table: str) -> str:
    before, mark, rest = text.partition(f"<!-- {name}: made by tools/slurm_matrix/table.py -->\n")
    return f"{before}{mark}{table}{rest[rest.index(_END) :]}"


def written_table() -> str:
    """What slurm.conf has for each release, of what differs between them."""
    return markdown(("Slurm", *VARYING, "a queue of whole nodes"), [_written(release) for release in RELEASES])


def kept_table() -> str:
    """The keys that are kept for corral, those of a reason together."""
    reasons: dict[tuple[Place, str], list[str]] = {}
    for place, keys in KEPT.items():
        for key, reason in keys.items():
            reasons.setdefault((place, reason), []).append(f"`{key}`")
    rows = [(", ".join(names), place.value, f"corral {reason}") for (place, reason), names in reasons.items()]
    return markdown(("key", "in", "why"), rows)


def settings_table() -> str:
    """Every row of the table of releases, and the releases for which corral writes it."""
    head = ("setting", "in", "known to Slurm", "corral writes it", "change", "source")
    return markdown(head, [_settings_row(setting) for setting in slurm_changes()])


def markdown(head: Row, rows: Sequence[Row]) -> str:
    """A table of markdown."""
    lines = (head, tuple("---" for _ in head), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _written(release: Release) -> Row:
    found = {key: value for place, record in written(release) for key, value in record.items() if place is Place.CONF}
    whole = {key: value for place, record in written(release) for key, value in record.items() if "xclusive" in key}
    whole = whole or {"OverSubscribe": "EXCLUSIVE"}
    values = (f"`{found[key].replace(',', ', ')}`" if key in found else "-" for key in VARYING)
    return (release_text(release), *values, *(f"`{key}={value}`" for key, value in whole.items()))


def _settings_row(setting: Setting) -> Row:
    releases = [release_text(release) for release in RELEASES if is_written(setting, release)]
    return (
        f"`{setting.text}`",
        setting.place.value,
        span(setting),
        ", ".join(releases) or "-",
        setting.change,
        setting.source,
    )


def span(setting: Setting) -> str:
    """The releases that know it, in words."""
    since = f"from {release_text(setting.since)}" if setting.since else ""
    until = f"before {release_text(setting.until)}" if setting.until else ""
    return " ".join(word for word in (since, until) if word)


def is_written(setting: Setting, release: Release) -> bool:
    """True if the files for this release have it, for a cluster that uses all that a plan can say."""
    values = (record.get(setting.key) for place, record in written(release) if place is setting.place)
    return any(value and (setting.value is None or setting.value in value.split(",")) for value in values)


def written(release: Release) -> Iterator[tuple[Place, dict[str, str]]]:
    """Every line of the files for this release, and where it stands."""
    plan: ClusterPlan = wide(release_text(release))
    files = cluster_files(plan)
    for name, place in (("gres", Place.GRES), ("cgroup", Place.CGROUP), ("host", Place.CONF), ("slurm", Place.CONF)):
        for record in records(files[f"slurm/{name}.conf"]):
            if place is Place.CONF and "NodeName" in record:
                yield Place.NODE, record
            elif place is Place.CONF and "PartitionName" in record:
                yield Place.PARTITION, record
            else:
                yield place, record


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
