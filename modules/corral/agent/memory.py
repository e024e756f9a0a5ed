"""What only the keeper knows, and must not lose: how long offers rest, what it is launching, what it counts.

All else is read from Slurm and EC2 at every turn. One small file on the head's state volume, written whole before each
call that changes something and after it. Times are seconds since 1970.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from corral.agent.install import Placement, install
from corral.agent.refusals import RESTS, Kind, Rest
from corral.agent.world import Instance
from corral.model.jsons import from_json, to_line

MEMORY = Path("/var/lib/corral/keeper.json")
# EC2 shows a new instance "typically within seconds"; what it does not show after this is not there.
SHOWN_WITHIN_S = 120.0
# How long an instance that was ended may still be shown as if it ran; then it is ended again.
ENDS_WITHIN_S = 90.0
_STRIKES_KEPT_S = 7200.0  # after the end of a rest: a refusal that comes later than this is a first one again

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cold:
    """An offer that rests. `strikes`: refusals in a row."""

    until: float
    strikes: int
    kind: Kind
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A launch that may have been made: whoever finds it makes the same one again, and gets the same instances."""

    offer: str
    nodes: tuple[str, ...]
    at_least: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Boots of a queue that failed, since the launch of the first; a machine launched later that is up ends the row."""

    count: int
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`cold`: by offer. `intents`, `tries`: by wish. `launched`: what EC2 may not show yet. `ended`: what was ended,
    and when. `wrong`: since when an instance or a node looks wrong. `failures`: boots that failed in a row, by queue.
    `counted`: instances whose end was looked at.
    """

    cold: Mapping[str, Cold] = field(default_factory=dict)
    intents: Mapping[str, Intent] = field(default_factory=dict)
    tries: Mapping[str, int] = field(default_factory=dict)
    launched: tuple[Instance, ...] = ()
    ended: Mapping[str, float] = field(default_factory=dict)
    wrong: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, Failures] = field(default_factory=dict)
    counted: tuple[str, ...] = ()


def chilled(memory: Memory, offer: str, kind: Kind, why: str, now: float, rests: Mapping[Kind, Rest] = RESTS) -> Memory:
    """With an offer that rests from now on, the longer the more often it was refused in a row."""
    before, rest = memory.cold.get(offer), rests[kind]
    if before and before.until > now and before.kind == kind:
        return memory  # many nodes of one refusal are one
    # That a block has not begun yet says nothing of what it will give.
    strikes = before.strikes + 1 if before and before.kind is not Kind.NOT_BEGUN else 1
    until = now + min(rest.first_s * 2 ** min(strikes - 1, 16), rest.longest_s)
    return replace(memory, cold={**memory.cold, offer: Cold(until=until, strikes=strikes, kind=kind, why=why)})


def awaiting(memory: Memory, begins: Mapping[str, float], now: float) -> Memory:
    """With the offers of capacity blocks that have not begun as ones that rest until then. `begins`: by offer."""
    cold = {
        offer: Cold(
            until=begin, strikes=1, kind=Kind.NOT_BEGUN, why=f"its capacity block begins at {_moment(begin)} UTC"
        )
        for offer, begin in begins.items()
        if now < begin
    }
    return replace(memory, cold={**memory.cold, **cold}) if cold else memory


def warmed(memory: Memory, offer: str) -> Memory:
    """With an offer that has given what was asked for."""
    return replace(memory, cold={key: held for key, held in memory.cold.items() if key != offer})


def intending(memory: Memory, wish: str, intent: Intent) -> Memory:
    """Before a launch."""
    return replace(memory, intents={**memory.intents, wish: intent})


def concluded(memory: Memory, wish: str, made: Sequence[Instance]) -> Memory:
    """After a launch, whether it gave something or was refused: the next one of this wish is another."""
    return replace(
        memory,
        intents={key: held for key, held in memory.intents.items() if key != wish},
        tries={**memory.tries, wish: memory.tries.get(wish, 0) + 1},
        launched=(*memory.launched, *made),
    )


def ending(memory: Memory, instance_ids: Iterable[str], now: float) -> Memory:
    """After instances were ended."""
    return replace(memory, ended={**memory.ended, **dict.fromkeys(instance_ids, now)})


def tidied(memory: Memory, notes: Iterable[str], shown: Iterable[Instance], now: float) -> Memory:
    """Without what is of no use any more: `notes` are the keys of those that wait, `shown` what EC2 shows."""
    waiting, seen = set(notes), {one.instance_id: one for one in shown}
    return replace(
        memory,
        cold={key: one for key, one in memory.cold.items() if one.until + _STRIKES_KEPT_S > now},
        intents={key: one for key, one in memory.intents.items() if note_of(key) in waiting},
        tries={key: count for key, count in memory.tries.items() if note_of(key) in waiting},
        launched=tuple(
            one for one in memory.launched if one.instance_id not in seen and one.launched_at + SHOWN_WITHIN_S > now
        ),
        ended={key: at for key, at in memory.ended.items() if key in seen or at + SHOWN_WITHIN_S > now},
        counted=tuple(key for key in memory.counted if key in seen),
    )


def instances(memory: Memory, shown: Sequence[Instance], now: float) -> tuple[Instance, ...]:
    """What there is: what EC2 shows and what it does not show yet, without what was just ended."""
    listed = {one.instance_id for one in shown}
    unseen = (
        one for one in memory.launched if one.instance_id not in listed and one.launched_at + SHOWN_WITHIN_S > now
    )
    return tuple(
        one
        for one in (*shown, *unseen)
        if not one.ended and now - memory.ended.get(one.instance_id, float("-inf")) >= ENDS_WITHIN_S
    )


def note_of(wish: str) -> str:
    """The key of the note that a wish came from."""
    return wish.partition(" ")[0]


def load(file: Path = MEMORY) -> Memory:
    """What the last keeper knew; nothing where there was none. What cannot be read is set aside, with a line.

    One of another version may have written other fields: those that are missing begin anew, strange ones are left out.
    """
    try:
        return from_json(Memory, file.read_text(encoding="utf-8"), lenient=True)
    except FileNotFoundError:
        return Memory()
    except ValueError as error:
        log.error("%s is set aside, it is not what a keeper wrote: %s", file, error)
        file.replace(file.with_suffix(".broken"))
        return Memory()


def save(memory: Memory, file: Path = MEMORY) -> None:
    """Whole, or not at all."""
    install((Placement(path=str(file), content=to_line(memory).encode(), mode=0o600),))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
