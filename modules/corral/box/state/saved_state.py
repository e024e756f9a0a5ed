"""The cloud on disk: all of moto's backends in one pickle, after a line with the versions that wrote it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import shlex
import sys
import threading
import types
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import moto
from moto.core.base_backend import BackendDict
from moto.s3.models import FakeKey

from corral.box.state.directory import StateDirectory
from corral.box.state.ownership import ownership_problem
from corral.box.state.saved_objects import LargeObjects, load_contents

FORMAT = 7  # of the file; raised when a class of the box changes its fields
SKIPPED = {"moto_api"}  # moto's own control panel, not a part of AWS

# What a saved cloud may name: classes of these modules, and the rest by name. A pickle calls what it names.
_MODULES = (
    "moto.",
    "corral.model.",
    *(f"corral.box.{name}" for name in ("api.", "ec2.", "ec2_capacity.", "ec2_network.", "faults.", "images")),
)
_NAMES = frozenset(
    {
        *(f"builtins.{one}" for one in ("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int")),
        *(f"builtins.{one}" for one in ("iter", "list", "object", "range", "set", "slice", "str", "tuple")),
        *(f"collections.{one}" for one in ("ChainMap", "Counter", "OrderedDict", "UserDict", "defaultdict", "deque")),
        *(f"datetime.{one}" for one in ("date", "datetime", "time", "timedelta", "timezone")),
        *(f"ipaddress.IPv{version}{kind}" for version in (4, 6) for kind in ("Address", "Interface", "Network")),
        *(f"threading.{one}" for one in ("Condition", "Event", "Lock", "RLock")),
        *("_thread.allocate_lock", "_thread.lock"),  # threading.Lock's own name until and from Python 3.13
        *("dateutil.tz.tz.tzlocal", "dateutil.tz.tz.tzoffset", "dateutil.tz.tz.tzutc"),
        *("decimal.Decimal", "fractions.Fraction", "random.Random", "re._compile", "uuid.UUID", "uuid.SafeUUID"),
        "weakref.WeakValueDictionary",
        *("moto.lakeformation.models.default_settings", "moto.xray.models.SegmentCollection._new_trace_item"),
        *(f"{__name__}.{one}" for one in ("_load_key", "_method", "_nested_dict", "_nested_dict_factory")),
        *(f"{__name__}._rebuild_dict", "corral.box.state.saved_objects._without_content"),
    }
)


class UnreadableState(Exception):
    """A saved cloud that cannot be read; the text is a sentence for the user."""


class VersionMismatch(UnreadableState):
    """A saved cloud of other versions."""


class CorruptState(UnreadableState):
    """A saved cloud that is damaged."""


def versions() -> dict[str, str | int]:
    """The versions that a saved cloud must match."""
    return {"format": FORMAT, "moto": moto.__version__, "python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def backend_dicts() -> dict[str, Any]:
    """All backend collections in use, by the `module:name` that another process finds them under."""
    in_use = {id(backends) for backends in BackendDict._instances}
    found = {}
    for name, module in sorted(sys.modules.items()):
        if not name.startswith("moto."):
            continue
        for attribute, value in list(vars(module).items()):
            if isinstance(value, BackendDict) and id(value) in in_use and value.service_name not in SKIPPED:
                in_use.discard(id(value))
                found[f"{name}:{attribute}"] = value
    return found


def backends() -> Iterator[tuple[str, str, str, Any]]:
    """Each backend with the `module:name` of its collection, its account and its region."""
    for name, collection in backend_dicts().items():
        for account, region, backend in list(collection.iter_backends()):
            yield name, account, region, backend


def save(home: StateDirectory) -> None:
    """Save the whole cloud. Raises OSError and leaves the last saved state unchanged."""
    contents = LargeObjects(home.objects)
    buffer = io.BytesIO()
    buffer.write(json.dumps(versions()).encode() + b"\n")
    CloudPickler(buffer, contents).dump(list(backends()))
    write_atomically(buffer.getvalue(), home.cloud)
    contents.remove_unreferenced()


def load(home: StateDirectory) -> None:
    """Load the saved cloud into moto; an absent file is an empty cloud.

    Raises UnreadableState with the file, the loss and the remedy.
    """
    try:
        _require_own(home.path, home.path.stat())
        with home.cloud.open("rb") as file:
            _require_own(home.cloud, os.fstat(file.fileno()))
            content = file.read()
    except FileNotFoundError:
        return
    except IsADirectoryError:
        raise _damaged(home, home.cloud, "it is a directory") from None
    except OSError as error:
        raise UnreadableState(_closed(home.cloud, error)) from None
    header, _, body = content.partition(b"\n")
    _check_versions(home, content, header)
    try:
        for name, account, region, backend in CloudUnpickler(io.BytesIO(body)).load():
            _restore(name, account, region, backend)
    except Exception as error:
        raise _damaged(home, home.cloud, _what_is_wrong(error)) from error
    _fill(home)


def write_atomically(data: bytes, path: Path) -> None:
    """Replace the file in one step, readable by its owner only."""
    draft = path.with_suffix(".new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _require_own(path: Path, status: os.stat_result) -> None:
    """Raises UnreadableState if another user may have written it."""
    if problem := ownership_problem(path, status):
        raise UnreadableState(problem)


def _check_versions(home: StateDirectory, content: bytes, header: bytes) -> None:
    """Raises VersionMismatch if other versions wrote the file, CorruptState if the header is invalid."""
    ours = versions()
    try:
        theirs = json.loads(header)
    except ValueError:
        theirs = None
    if not isinstance(theirs, dict) or not theirs.keys() >= ours.keys():
        raise _damaged(home, home.cloud, "it has no valid header" if content else "it is empty")
    if differing := [name for name in ours if theirs[name] != ours[name]]:
        named = ", ".join(f"{name} {theirs[name]} (this is {ours[name]})" for name in differing)
        raise VersionMismatch(
            f"{home.cloud} was saved by {named} - install that version, or discard the state of this box:"
            f" {_reset(home)}"
        )


def _fill(home: StateDirectory) -> None:
    try:
        load_contents(home.objects)
    except FileNotFoundError as error:
        raise _damaged(home, Path(error.filename), "it is missing") from None
    except OSError as error:
        raise UnreadableState(_closed(Path(error.filename), error)) from None


def _damaged(home: StateDirectory, path: Path, reason: str) -> CorruptState:
    return CorruptState(
        f"{path} is damaged ({reason}): the state of this box is lost - restore the file from a copy, or start empty:"
        f" {_reset(home)}"
    )


def _what_is_wrong(error: Exception) -> str:
    if isinstance(error, EOFError) or "truncated" in str(error):
        return "it is truncated"
    return f"it holds no saved cloud: {' '.join(str(error).split()) or type(error).__name__}"


def _closed(path: Path, error: OSError) -> str:
    return f"{path} cannot be read: {error.strerror} - it holds the state of this box; check its owner"


def _reset(home: StateDirectory) -> str:
    return f"`corral box reset --dir {shlex.quote(str(home.path))}`"


def _restore(name: str, account: str, region: str, backend: Any) -> None:
    module, _, attribute = name.partition(":")
    collection = getattr(import_module(module), attribute)
    dict.__setitem__(collection[account], region, backend)
    if hasattr(collection, "bucket_accounts"):  # S3's bucket names are global, stored outside the backends
        collection.bucket_accounts.update(dict.fromkeys(backend.buckets, (backend.partition, account)))


class CloudUnpickler(pickle.Unpickler):
    """An unpickler that refuses what no saved cloud names. It narrows what a foreign file can do, and is no sandbox."""

    def find_class(self, module: str, name: str) -> Any:
        """The class or function. Raises UnpicklingError if it does not belong in a saved cloud."""
        if f"{module}.{name}" in _NAMES:
            return super().find_class(module, name)
        if module.startswith(_MODULES):  # a dotted name may lead to what a module has imported
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__.startswith(_MODULES):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} does not belong in one")


class CloudPickler(pickle.Pickler):
    """A pickler for the locks, private keys, lambdas and paging generators in moto's backends.

    What the unpickler would refuse fails here already: otherwise the loss would show at the next start.
    """

    def __init__(self, file: IO[bytes], contents: LargeObjects) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._contents = contents

    def reducer_override(self, obj: Any) -> Any:
        """The reduction of an object that pickle itself refuses."""
        if isinstance(obj, FakeKey):
            return self._contents.reduce(obj)
        if isinstance(obj, type(threading.Lock())):
            return threading.Lock, ()
        if isinstance(obj, type(threading.RLock())):
            return threading.RLock, ()
        if isinstance(obj, threading.Condition):
            return threading.Condition, (vars(obj)["_lock"],)
        if isinstance(obj, Enum):
            return type(obj), (obj.value,)  # Python 3.11.2, Debian 12's, names it by `getattr`
        if isinstance(obj, types.MethodType):
            return _method, (obj.__self__, obj.__name__)
        if isinstance(obj, types.GeneratorType):
            return iter, ((),)  # the rest of a listing: the next page starts over
        if isinstance(obj, types.FunctionType) and "<" in obj.__qualname__:
            return _nested_dict_factory, ()
        if isinstance(obj, defaultdict) and type(obj) is not defaultdict:
            return _rebuild_dict, (type(obj), vars(obj), obj.default_factory, dict(obj))
        if hasattr(obj, "private_bytes") and hasattr(obj, "public_key"):
            return _load_key, (_key_bytes(obj),)
        if isinstance(obj, type | types.FunctionType | types.BuiltinFunctionType) and not _belongs(obj):
            raise pickle.PicklingError(f"{obj.__module__}.{obj.__qualname__} does not belong in a saved cloud")
        return NotImplemented


def _belongs(obj: Any) -> bool:
    is_class = isinstance(obj, type) and obj.__module__.startswith(_MODULES)
    return is_class or f"{obj.__module__}.{obj.__qualname__}" in _NAMES


def _method(owner: Any, name: str) -> Any:
    if not type(owner).__module__.startswith(_MODULES):
        raise pickle.UnpicklingError(f"{type(owner).__qualname__}.{name} does not belong in one")
    return getattr(owner, name)


def _nested_dict() -> Any:
    return defaultdict(dict)


def _nested_dict_factory() -> Any:
    return _nested_dict


def _rebuild_dict(kind: Any, attributes: dict[str, Any], factory: Any, items: dict[Any, Any]) -> Any:
    rebuilt = kind.__new__(kind)
    rebuilt.__dict__.update(attributes)
    rebuilt.default_factory = factory
    dict.update(rebuilt, items)
    return rebuilt


def _key_bytes(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))


def _load_key(data: bytes) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(data, None)
