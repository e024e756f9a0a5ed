"""Whether who asks may make the calls of `corral up`, and the head those of its work, by IAM's own simulations. Pure.

A simulation knows the policies of a user or role and its boundary; what an organisation or a bucket's owner forbids it
does not know. Source: IAM API reference, SimulatePrincipalPolicy, SimulateCustomPolicy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="permissions")
_TOLD = 12  # names in one finding
UNKNOWN = frozenset({"InvalidInput", "NoSuchEntity"})  # IAM's codes for somebody whom it does not simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """An action that is not allowed. `lacking`: condition keys that decide about it and that nobody can know here."""

    action: str
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What IAM says of somebody: of how many actions, and which are denied. `refusal`: its code, "" where it says."""

    asked: int = 0
    denied: tuple[Denied, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`caller`: the ARN of whom IAM was asked about."""

    caller: str
    deployer: Simulated
    head: Simulated


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """Who asks, then the head."""
    yield from _deployer(wanted, facts)
    yield from _judged("head", "its policy as planned", facts.head, "the policy and the agent differ: report it")


def _deployer(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    about, caller = "deployer", facts.caller
    if caller.endswith(":root"):
        text = f"{caller} may do everything, and IAM does not simulate it"
        yield _TELL.warn(about, text, "use a role or a user with corral's policies (docs/bootstrap.md)")
    elif facts.deployer.refusal in UNKNOWN and wanted.cluster.image.box:
        yield _TELL.ok(about, f"{caller} is the box's own user, who may do everything")
    elif facts.deployer.refusal in UNKNOWN:
        text = f"{caller} is no user or role that IAM simulates ({facts.deployer.refusal})"
        yield _TELL.warn(about, text, "allow iam:GetRole on it, since its path is not in a session's ARN")
    else:
        attach = "attach to it the policies that `corral bootstrap` makes (docs/bootstrap.md)"
        yield from _judged(about, caller, facts.deployer, attach)


def _judged(about: str, who: str, found: Simulated, fix: str) -> Iterator[Finding]:
    if found.refusal:
        action = "iam:SimulateCustomPolicy" if about == "head" else "iam:SimulatePrincipalPolicy"
        text = "cannot be simulated: these credentials may not ask what is allowed"
        yield _TELL.warn(about, text, f"allow {action}, or leave it out by --skip permissions")
        return
    denied = [one.action for one in found.denied if not one.lacking]
    unsure = [one for one in found.denied if one.lacking]
    if denied:
        yield _TELL.fail(about, f"{who} does not allow {_listed(denied)}", fix)
    if unsure:
        keys = _listed(sorted({key for one in unsure for key in one.lacking}))
        text = f"{who} allows {_listed(one.action for one in unsure)} only by {keys}, which is not known before"
        yield _TELL.warn(about, text, "see that these conditions let corral's own things through")
    if not found.denied:
        yield _TELL.ok(about, f"{who} allows all {found.asked} actions that are called")


def _listed(names: Iterable[str]) -> str:
    each = sorted(set(names))
    more = f" and {len(each) - _TOLD} more" if len(each) > _TOLD else ""
    return ", ".join(each[:_TOLD]) + more
