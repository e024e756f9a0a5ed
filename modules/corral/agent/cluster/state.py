"""The autoscaler's own state: offers in backoff, launches in progress, failed boots, and the file that holds them.

Everything else is read from Slurm and EC2 at every reconciliation. The file is on the head's state volume, and is
rewritten before and after each call that changes something. Times are seconds since 1970.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from corral.agent.cluster.launch_errors import BACKOFF_POLICIES, NEEDS_ACTION, BackoffPolicy, LaunchErrorKind
from corral.agent.cluster.models import Instance, PowerRequest
from corral.agent.file_install import Placement, install
from corral.model.serialization import from_json, to_line

STATE_FILE = Path("/var/lib/corral/keeper.json")  # paths on the state volume are fixed
# EC2 shows a new instance "typically within seconds"; one that it does not show after this does not exist.
SHOWN_WITHIN_S = 120.0
# How long EC2 may show an instance as running after it was terminated; after that it is terminated again.
ENDS_WITHIN_S = 90.0
_REFUSALS_COUNT_FOR_S = 7200.0  # after the end of a backoff; the next refusal then counts as the first

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """An offer that is not tried before `until`. `refusals`: how many in a row."""

    until: float
    refusals: int
    kind: LaunchErrorKind
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A launch that may have been made. Making it again with its token returns the same instances."""

    offer: str
    nodes: tuple[str, ...]
    at_least: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFailures:
    """Failed boots of a queue in a row. `since`: the first one's launch; a later machine that registers resets them."""

    count: int
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerState:
    """What the autoscaler remembers between reconciliations.

    `backoffs`: by offer. `intents`, `tries`: by the key of a launch request. `served`: the nodes of a waiting power
    request that no longer wait, by its key. `launched`: instances that EC2 may not show yet. `ended`: when instances
    were terminated. `wrong_since`: since when an instance or a node looks wrong. `failures`: by queue. `counted`:
    instances whose end is already counted.
    """

    backoffs: Mapping[str, Backoff] = field(default_factory=dict)
    intents: Mapping[str, Intent] = field(default_factory=dict)
    tries: Mapping[str, int] = field(default_factory=dict)
    served: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    launched: tuple[Instance, ...] = ()
    ended: Mapping[str, float] = field(default_factory=dict)
    wrong_since: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, BootFailures] = field(default_factory=dict)
    counted: tuple[str, ...] = ()


def back_off(
    state: AutoscalerState,
    offer: str,
    kind: LaunchErrorKind,
    reason: str,
    now: float,
    policies: Mapping[LaunchErrorKind, BackoffPolicy] = BACKOFF_POLICIES,
) -> AutoscalerState:
    """The state with this offer backing off from now on; each further refusal in a row doubles the time."""
    before, policy = state.backoffs.get(offer), policies[kind]
    if before and before.until > now and before.kind == kind:
        return state  # one refusal may concern many nodes
    # That a block has not begun does not count: it says nothing about capacity.
    refusals = before.refusals + 1 if before and before.kind is not LaunchErrorKind.NOT_BEGUN else 1
    until = now + min(policy.first_s * 2 ** min(refusals - 1, 16), policy.longest_s)
    return replace(
        state, backoffs={**state.backoffs, offer: Backoff(until=until, refusals=refusals, kind=kind, reason=reason)}
    )


def back_off_blocks_not_begun(state: AutoscalerState, begins: Mapping[str, float], now: float) -> AutoscalerState:
    """The state with the offers of capacity blocks backing off until their block begins. `begins`: by offer."""
    backoffs = {
        offer: Backoff(
            until=begin,
            refusals=1,
            kind=LaunchErrorKind.NOT_BEGUN,
            reason=f"its capacity block begins at {_minute(begin)} UTC",
        )
        for offer, begin in begins.items()
        if now < begin
    }
    return replace(state, backoffs={**state.backoffs, **backoffs}) if backoffs else state


def clear_backoff(state: AutoscalerState, offer: str) -> AutoscalerState:
    """The state after an offer served a launch."""
    return replace(state, backoffs={key: held for key, held in state.backoffs.items() if key != offer})


def end_fixable_backoffs(state: AutoscalerState) -> AutoscalerState:
    """The state after a person has changed the configuration: offers that needed an action are tried again."""
    kept = {offer: held for offer, held in state.backoffs.items() if held.kind not in NEEDS_ACTION}
    return replace(state, backoffs=kept)


def shorten_fixable_backoff(state: AutoscalerState, offer: str, until: float) -> AutoscalerState:
    """The state in which this offer's backoff, if it needs an action, ends at `until` at the latest."""
    held = state.backoffs[offer]
    if held.kind not in NEEDS_ACTION or held.until <= until:
        return state
    return replace(state, backoffs={**state.backoffs, offer: replace(held, until=until)})


def record_intent(state: AutoscalerState, key: str, intent: Intent) -> AutoscalerState:
    """The state before a launch. `key`: of the launch request."""
    return replace(state, intents={**state.intents, key: intent})


def record_launch(state: AutoscalerState, launch_key: str, made: Sequence[Instance]) -> AutoscalerState:
    """The state after a launch, served or refused. The next launch of this request gets another token."""
    return replace(
        state,
        intents={key: held for key, held in state.intents.items() if key != launch_key},
        tries={**state.tries, launch_key: state.tries.get(launch_key, 0) + 1},
        launched=(*state.launched, *made),
    )


def record_termination(state: AutoscalerState, instance_ids: Iterable[str], now: float) -> AutoscalerState:
    """The state after these instances were terminated."""
    return replace(state, ended={**state.ended, **dict.fromkeys(instance_ids, now)})


def prune(state: AutoscalerState, requests: Iterable[str], shown: Iterable[Instance], now: float) -> AutoscalerState:
    """The state without entries that are no longer needed.

    `requests`: the keys of the power requests that wait. `shown`: the instances that EC2 shows.
    """
    waiting, seen = set(requests), {one.instance_id: one for one in shown}
    return replace(
        state,
        backoffs={key: one for key, one in state.backoffs.items() if one.until + _REFUSALS_COUNT_FOR_S > now},
        intents={key: one for key, one in state.intents.items() if power_request_of(key) in waiting},
        tries={key: count for key, count in state.tries.items() if power_request_of(key) in waiting},
        served={key: nodes for key, nodes in state.served.items() if key in waiting},
        launched=tuple(
            one for one in state.launched if one.instance_id not in seen and one.launched_at + SHOWN_WITHIN_S > now
        ),
        ended={key: at for key, at in state.ended.items() if key in seen or at + SHOWN_WITHIN_S > now},
        counted=tuple(key for key in state.counted if key in seen),
    )


def record_served(state: AutoscalerState, request: PowerRequest, waiting: frozenset[str]) -> AutoscalerState:
    """The state in which only these nodes of a power request wait."""
    done = tuple(node for node in request.nodes if node not in waiting)
    return replace(state, served={**state.served, request.key: (*state.served.get(request.key, ()), *done)})


def unserved(state: AutoscalerState, request: PowerRequest) -> PowerRequest:
    """The power request with the nodes that still wait."""
    return request.without(set(state.served.get(request.key, ())))


def known_instances(state: AutoscalerState, shown: Sequence[Instance], now: float) -> tuple[Instance, ...]:
    """The instances that exist: those that EC2 shows or will show soon, without those just terminated."""
    listed = {one.instance_id for one in shown}
    unseen = (one for one in state.launched if one.instance_id not in listed and one.launched_at + SHOWN_WITHIN_S > now)
    return tuple(
        one
        for one in (*shown, *unseen)
        if not one.ended and now - state.ended.get(one.instance_id, float("-inf")) >= ENDS_WITHIN_S
    )


def power_request_of(key: str) -> str:
    """The key of the power request that a launch request came from."""
    return key.partition(" ")[0]


def load_state(file: Path = STATE_FILE) -> AutoscalerState:
    """The state that the last autoscaler saved; empty without one. A file that cannot be read is renamed and logged.

    Another version may have written other fields: missing ones get their defaults, unknown ones are dropped.
    """
    try:
        return from_json(AutoscalerState, file.read_text(encoding="utf-8"), lenient=True)
    except FileNotFoundError:
        return AutoscalerState()
    except ValueError as error:
        log.error("%s is not a valid autoscaler state, renamed to *.broken: %s", file, error)
        file.replace(file.with_suffix(".broken"))
        return AutoscalerState()


def save_state(state: AutoscalerState, file: Path = STATE_FILE) -> None:
    """Write the state to its file, atomically."""
    install((Placement(path=str(file), content=to_line(state).encode(), mode=0o600),))


def _minute(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
