"""The network of somebody else that a base stands in, as a check; what is wrong with one `adoption` says."""

from __future__ import annotations

from collections.abc import Iterator

from corral.preflight.adopted import adoption_facts
from corral.preflight.adoption import AdoptionFacts, adoption_problems
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="network")


def ask(answers: Answers, wanted: Wanted) -> AdoptionFacts | None:
    """The facts of the adopted VPC; None where the base makes its own."""
    if wanted.base.adopted_vpc is None:
        return None
    return adoption_facts(answers, wanted.base, wanted.cluster)


def judge(wanted: Wanted, facts: AdoptionFacts | None) -> Iterator[Finding]:
    """Everything that stands in the way, or that nothing does."""
    if facts is None:
        yield _TELL.ok("VPC", f"made by the base: {wanted.base.vpc_cidr}")
        return
    vpc = wanted.base.adopted_vpc or ""
    problems = adoption_problems(wanted.base, wanted.cluster, facts)
    for problem in problems:
        text, _, fix = problem.partition(" - ")
        yield _TELL.fail(vpc, text, fix or "see docs/spec.md, network.adopt")
    if not problems:
        yield _TELL.ok(vpc, f"has {len(wanted.base.zones)} subnets with room and a way out")
