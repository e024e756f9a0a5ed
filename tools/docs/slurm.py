"""The tables of docs/slurm.md, from the code. The text outside the marks is written by hand."""

from collections.abc import Iterator, Mapping
from functools import cache

from tools.docs.tables import filled, table

from corral.catalog.slurm.conf_keys import ConfSection, ConfSetting, slurm_changes
from corral.catalog.slurm.releases import RELEASES, Release, release_text
from corral.model.cluster import ClusterPlan
from corral.render import cluster_files
from corral.spec.rules.slurm_key_rules import RESERVED
from render.slurm_files import records
from slurms import wide

VARYING = ("SlurmctldParameters", "CommunicationParameters", "TreeWidth", "PrivateData")


def fill(page: str) -> str:
    """Return the page with new tables."""
    return filled(page, {"written": table(_releases()), "kept": table(_kept()), "settings": table(_settings())})


def _releases() -> Iterator[Mapping[str, str]]:
    """The settings of slurm.conf that differ between releases."""
    for release in RELEASES:
        lines = written(release)
        found = {
            key: value for section, record in lines for key, value in record.items() if section is ConfSection.CONF
        }
        whole = {key: value for _, record in lines for key, value in record.items() if "xclusive" in key}
        (setting,) = (whole or {"OverSubscribe": "EXCLUSIVE"}).items()
        yield {
            "Slurm": release_text(release),
            **{key: f"`{found[key].replace(',', ', ')}`" if key in found else "-" for key in VARYING},
            "a queue of whole nodes": f"`{'='.join(setting)}`",
        }


def _kept() -> Iterator[Mapping[str, str]]:
    """The keys that only corral may set, grouped by reason."""
    reasons: dict[tuple[ConfSection, str], list[str]] = {}
    for section, keys in RESERVED.items():
        for key, reason in keys.items():
            reasons.setdefault((section, reason), []).append(f"`{key}`")
    for (section, reason), names in reasons.items():
        yield {"key": ", ".join(names), "in": section.value, "why": f"corral {reason}"}


def _settings() -> Iterator[Mapping[str, str]]:
    """Every setting that a release changed, and the releases for which corral writes it."""
    for setting in slurm_changes():
        releases = [release_text(release) for release in RELEASES if is_written(setting, release)]
        yield {
            "setting": f"`{setting.text}`",
            "in": setting.section.value,
            "known to Slurm": span(setting),
            "corral writes it": ", ".join(releases) or "-",
            "change": setting.change,
            "source": setting.source,
        }


def span(setting: ConfSetting) -> str:
    """The releases that know the setting, in words."""
    since = f"from {release_text(setting.since)}" if setting.since else ""
    until = f"before {release_text(setting.until)}" if setting.until else ""
    return " ".join(word for word in (since, until) if word)


def is_written(setting: ConfSetting, release: Release) -> bool:
    """True if the files for this release contain it, for a cluster that uses every setting of a plan."""
    values = (record.get(setting.key) for section, record in written(release) if section is setting.section)
    return any(value and (setting.value is None or setting.value in value.split(",")) for value in values)


@cache
def written(release: Release) -> tuple[tuple[ConfSection, dict[str, str]], ...]:
    """Every line of the files for this release, and its section."""
    return tuple(_lines(release))


def _lines(release: Release) -> Iterator[tuple[ConfSection, dict[str, str]]]:
    plan: ClusterPlan = wide(release_text(release))
    files = cluster_files(plan)
    for name, section in (
        ("slurm/gres", ConfSection.GRES),
        ("slurm/cgroup", ConfSection.CGROUP),
        ("slurm/host", ConfSection.CONF),
        ("slurm/slurm", ConfSection.CONF),
        ("accounting/slurmdbd", ConfSection.DBD),
    ):
        for record in records(files[f"{name}.conf"]):
            if section is ConfSection.CONF and "NodeName" in record:
                yield ConfSection.NODE, record
            elif section is ConfSection.CONF and "PartitionName" in record:
                yield ConfSection.PARTITION, record
            else:
                yield section, record
