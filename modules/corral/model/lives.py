"""What is kept of a cluster's life when the cluster is gone: its events and the runs of its jobs, an object a life.

The head writes the object into its base's bucket, and the command line reads it. A life is one from up to down: it has
the state volume that a replaced head goes on with.
"""

import gzip
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime

from corral.model.head import JobRun
from corral.model.jsons import from_json, to_line

FORMAT = 1  # changes where a field gets another meaning or goes away; what is added is left out by older readers
_ENDING = ".json.gz"
_WORD = "%Y-%m-%dT%H-%M-%SZ"  # no colon: such a key is a file's name everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLife:
    """A life as it was when it was kept. Times are whole seconds since 1970.

    `began`: when the life did, by which it is known. `head_since`: when the head of that moment was launched, None
    where that is not known. `events`: the lines as they were written. `problem`: why runs may be missing, empty where
    all are there.
    """

    format: int
    cluster: str
    began: int
    kept: int
    head_since: int | None
    events: tuple[str, ...]
    runs: tuple[JobRun, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    format: int


def lives_prefix(cluster: str) -> str:
    """How the keys of the cluster's lives begin; not below the cluster's prefix, since they outlive that."""
    return f"lives/{cluster}/"


def life_key(cluster: str, began: int) -> str:
    """The key of the life that began then, in the base's bucket."""
    return f"{lives_prefix(cluster)}{life_word(began)}{_ENDING}"


def life_word(began: int) -> str:
    """How people call the life that began then: `2026-11-22T10-28-30Z`."""
    return datetime.fromtimestamp(began, UTC).strftime(_WORD)


def began_in(cluster: str, key: str) -> int | None:
    """When the life of this key began; None for what is no life of the cluster."""
    word = key.removeprefix(lives_prefix(cluster)).removesuffix(_ENDING)
    try:
        began = int(datetime.strptime(word, _WORD).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
    return began if key == life_key(cluster, began) else None


def packed(life: KeptLife) -> bytes:
    """The object's content: JSON, zipped."""
    return gzip.compress(to_line(life).encode(errors="replace"), mtime=0)


def unpacked(content: bytes) -> KeptLife:
    """The life that `packed` wrote. Raises ValueError where it is none, or of a format that is not known here."""
    try:
        text = gzip.decompress(content).decode()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"it cannot be unzipped: {error}") from None
    found = from_json(_Format, text, lenient=True).format
    if found != FORMAT:
        raise ValueError(f"its format is {found}, this corral reads {FORMAT}")
    return from_json(KeptLife, text, lenient=True)
