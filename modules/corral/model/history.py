"""The stored history of a cluster: its events and job runs, one object per deployment, retained after its teardown.

The head writes the object to its base's bucket, and the command line reads it. A history spans from deployment to
teardown, including replacements of the head, which keep the state volume.
"""

import gzip
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime

from corral.model.head_report import JobRun
from corral.model.serialization import from_json, to_line

FORMAT = 2  # raised when a field changes its meaning or is removed; older readers skip added fields
_SUFFIX = ".json.gz"
_ID_FORMAT = "%Y-%m-%dT%H-%M-%SZ"  # without colons, so that a key is a valid file name everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredHistory:
    """A history as it was at `stored_at`. Times are whole seconds since 1970.

    `began`: when the cluster was deployed, which identifies the history. `head_since`: when the head at that time was
    launched, None if unknown. `events`: the lines as written. `problem`: why runs may be missing, empty if complete.
    """

    format: int
    cluster: str
    began: int
    stored_at: int
    head_since: int | None
    events: tuple[str, ...]
    runs: tuple[JobRun, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    format: int


def history_prefix(cluster: str) -> str:
    """Return the key prefix of the cluster's histories, which outlive the cluster and its own prefix."""
    return f"lives/{cluster}/"


def history_key(cluster: str, began: int) -> str:
    """Return the key, in the base's bucket, of the history that began then."""
    return f"{history_prefix(cluster)}{history_id(began)}{_SUFFIX}"


def history_id(began: int) -> str:
    """Return the id of the history that began then: `2026-11-22T10-28-30Z`."""
    return datetime.fromtimestamp(began, UTC).strftime(_ID_FORMAT)


def began_of_key(cluster: str, key: str) -> int | None:
    """Return when the history with this key began; None if it is not one of the cluster's."""
    name = key.removeprefix(history_prefix(cluster)).removesuffix(_SUFFIX)
    try:
        began = int(datetime.strptime(name, _ID_FORMAT).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
    return began if key == history_key(cluster, began) else None


def pack(history: StoredHistory) -> bytes:
    """Return the object's content: gzipped JSON."""
    return gzip.compress(to_line(history).encode(errors="replace"), mtime=0)


def unpack(content: bytes) -> StoredHistory:
    """Return the history that `pack` wrote. Raises ValueError if it is invalid or of an unknown format."""
    try:
        text = gzip.decompress(content).decode()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"it is not valid gzip: {error}") from None
    found = from_json(_Format, text, lenient=True).format
    if found != FORMAT:
        raise ValueError(f"its format is {found}, this corral reads {FORMAT}")
    return from_json(StoredHistory, text, lenient=True)
