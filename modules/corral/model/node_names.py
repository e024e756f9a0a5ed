"""Node names and their folded form, `train-[1-2,7]`. Every node name is its queue's name, a dash and a number."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice

# Numbers as corral and Slurm write them: no leading zero, which would be another name, and no more digits than the
# largest cluster needs, so that a stray tag cannot fill the memory; nor can many of them.
_MOST = 65_536  # Slurm's MAX_SLURM_NODES
_NUMBER = r"(?:0|[1-9][0-9]{0,4})"
_SPAN = rf"{_NUMBER}(?:-{_NUMBER})?"
_PART = re.compile(rf"([a-z][a-z0-9-]*)-(?:({_NUMBER})|\[({_SPAN}(?:,{_SPAN})*)\])")


@lru_cache(maxsize=64)  # all instances of a launch have the same tag
def expand(folded: str) -> tuple[str, ...]:
    """Every name of a folded list, in its order. Raises ValueError if the text is not a list of corral's nodes."""
    names = tuple(islice((name for part in _parts(folded) for name in _names(part)), _MOST + 1))
    if len(names) > _MOST:
        raise ValueError(f"a list of more than {_MOST:,} nodes is none of Slurm's")
    return names


def name_at(folded: str, index: int) -> str:
    """The name at this index of a folded list. A launch's list and index identify the node of an instance.

    Raises ValueError if the list has no such index.
    """
    names = expand(folded)
    if not 0 <= index < len(names):
        raise ValueError(f"{folded!r} has no node {index}")
    return names[index]


def fold(names: Iterable[str]) -> str:
    """The names as Slurm writes them, sorted by queue and number, each once."""
    split = sorted({(queue_of(name), number_of(name)) for name in names})
    queues = groupby(split, key=lambda one: one[0])
    return ",".join(_folded(queue, [number for _, number in group]) for queue, group in queues)


def queue_of(name: str) -> str:
    """The queue of a node."""
    return name.rpartition("-")[0]


def number_of(name: str) -> int:
    """The number of a node within its queue."""
    return int(name.rpartition("-")[2])


def _parts(folded: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    yield from (part for part in re.split(r",(?![^\[]*\])", folded) if part)


def _names(part: str) -> Iterator[str]:
    found = _PART.fullmatch(part)
    if found is None:
        raise ValueError(f"{part!r} is not a list of nodes")
    queue, single, several = found.groups()
    for span in (single or several).split(","):
        first, _, last = span.partition("-")
        if int(last or first) < int(first):
            raise ValueError(f"{part!r} is not a list of nodes: {span} counts down")
        yield from (f"{queue}-{number}" for number in range(int(first), int(last or first) + 1))


def _folded(queue: str, numbers: Sequence[int]) -> str:
    spans = list(_spans(numbers))
    if len(spans) == 1 and "-" not in spans[0]:
        return f"{queue}-{spans[0]}"
    return f"{queue}-[{','.join(spans)}]"


def _spans(numbers: Sequence[int]) -> Iterator[str]:
    """Consecutive numbers have the same difference to their position."""
    for _, group in groupby(enumerate(numbers), key=lambda one: one[1] - one[0]):
        span = [number for _, number in group]
        yield str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}"
