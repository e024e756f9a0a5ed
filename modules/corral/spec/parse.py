"""Raw data, from a file or from Pulumi's config, to specs. Every mistake is found before anything is raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from corral.spec import rules_base, rules_cluster, rules_names
from corral.spec.base import BaseSpec, BaseWishes
from corral.spec.cluster import ClusterSpec, ClusterWishes
from corral.spec.errors import Finding, Loc, SpecError, SpecErrors, path_of
from corral.spec.salvage import parse_model
from corral.spec.surroundings import Surroundings

Wishes = TypeVar("Wishes", bound=BaseModel)
Spec = TypeVar("Spec")
_LAST = 1_000_000  # sorts a field that is missing behind those that are there


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[Spec]):
    """A spec, or as much of it as could be understood, and what is wrong with it."""

    spec: Spec | None = None
    errors: tuple[SpecError, ...]

    def checked(self) -> Spec:
        """The spec. Raises SpecErrors where anything is wrong with it."""
        if self.errors or self.spec is None:
            raise SpecErrors(self.errors)
        return self.spec


def parse_base(raw: Mapping[str, Any], *, name: str, where: str, around: Surroundings) -> BaseSpec:
    """The base that this raw data declares; `where` names its file in errors. Raises SpecErrors."""
    return read_base_wishes(raw, name=name, where=where, around=around).checked()


def parse_cluster(raw: Mapping[str, Any], *, name: str, where: str, around: Surroundings) -> ClusterSpec:
    """The cluster that this raw data declares; `where` names its file in errors. Raises SpecErrors.

    Without its base, what only shows against it (zones, addresses) goes unchecked.
    """
    return read_cluster_wishes(raw, name=name, where=where, around=around).checked()


def read_base_wishes(raw: Mapping[str, Any], *, name: str, where: str, around: Surroundings) -> Outcome[BaseSpec]:
    """What `parse_base` gives or raises, both at once."""
    wishes, findings = _wishes(BaseWishes, raw, lambda wishes: rules_base.check(wishes, around))
    errors = _errors(rules_names.check_stack(name, around.region), findings, raw, where)
    if wishes is None:
        return Outcome(spec=None, errors=errors)
    stack = {"name": name, "region": around.region, "file": where}
    return Outcome(spec=BaseSpec.model_construct(**{**_values(wishes), **stack}), errors=errors)


def read_cluster_wishes(raw: Mapping[str, Any], *, name: str, where: str, around: Surroundings) -> Outcome[ClusterSpec]:
    """What `parse_cluster` gives or raises, both at once."""
    wishes, findings = _wishes(ClusterWishes, raw, lambda wishes: rules_cluster.check(wishes, around))
    errors = _errors(rules_names.check_stack(name, around.region), findings, raw, where)
    if wishes is None:
        return Outcome(spec=None, errors=errors)
    stack = {"name": name, "region": around.region, "file": where, "base": wishes.base or name}
    return Outcome(spec=ClusterSpec.model_construct(**{**_values(wishes), **stack}), errors=errors)


def read_wishes(
    model: type[Wishes], raw: Mapping[str, Any], where: str, rules: Callable[[Wishes], Iterable[Finding]]
) -> tuple[Wishes | None, tuple[SpecError, ...]]:
    """What could be understood of a file that is no stack's, and every mistake in it, in the file's order."""
    wishes, findings = _wishes(model, raw, rules)
    return wishes, _errors((), findings, raw, where)


def _wishes(
    model: type[Wishes], raw: Mapping[str, Any], rules: Callable[[Wishes], Iterable[Finding]]
) -> tuple[Wishes | None, tuple[Finding, ...]]:
    """What could be understood, and every mistake: of shape, and against the rules where the shape is right."""
    parsed = parse_model(model, raw)
    return parsed.model, (*parsed.findings, *parsed.holding(rules))


def _values(wishes: BaseModel) -> dict[str, Any]:
    return {name: getattr(wishes, name) for name in type(wishes).model_fields}


def _errors(
    of_stack: Iterable[Finding], findings: Iterable[Finding], raw: Mapping[str, Any], where: str
) -> tuple[SpecError, ...]:
    """The findings as errors: the stack's, then in the order in which their places stand in the file.

    What is missing comes after what is there.
    """
    ordered = (*of_stack, *sorted(dict.fromkeys(findings), key=lambda finding: _rank(finding.loc, raw)))
    return tuple(SpecError(file=where, path=path_of(finding.loc), message=finding.message) for finding in ordered)


def _rank(loc: Loc, raw: Any) -> tuple[int, ...]:
    rank: list[int] = []
    if loc[:1] == ("aws:region",):
        return (-1,)  # it stands above the spec
    for step in loc:
        if isinstance(raw, Mapping) and step in raw:
            rank.append(list(raw).index(step))
            raw = raw[step]
        elif isinstance(raw, list) and isinstance(step, int) and step < len(raw):
            rank.append(step)
            raw = raw[step]
        else:
            return (*rank, _LAST)
    return tuple(rank)
