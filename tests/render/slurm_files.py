"""Reading Slurm's files as Slurm does, apart from its own parser: comments away, one record a line."""

from collections.abc import Sequence


def records(text: str) -> Sequence[dict[str, str]]:
    """The fields of every line that has any."""
    lines = (line.split("#")[0].split() for line in text.splitlines())
    return [dict(word.split("=", 1) for word in words if "=" in word) for words in lines if words]


def settings(text: str) -> dict[str, str]:
    """The lines with a single setting, by key."""
    return {key: value for record in records(text) if len(record) == 1 for key, value in record.items()}
