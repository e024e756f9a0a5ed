"""Parse raw data, from a file or from Pulumi's config, into specs. Collect every mistake before raising."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from corral.spec.models.base import BaseSpec, BaseSpecInput
from corral.spec.models.cluster import ClusterSpec, ClusterSpecInput
from corral.spec.partial_parse import parse_model
from corral.spec.rules import base_rules, cluster_rules, name_rules
from corral.spec.spec_errors import Loc, SpecError, SpecErrors, SpecFinding
from corral.spec.validation_context import ValidationContext

Input = TypeVar("Input", bound=BaseModel)
Spec = TypeVar("Spec")
_LAST = 1_000_000  # sorts missing fields after existing ones


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseResult(Generic[Spec]):
    """A parsed spec, or the part of it that could be parsed, and its errors."""

    spec: Spec | None = None
    errors: tuple[SpecError, ...]

    def unwrap(self) -> Spec:
        """Return the spec. Raises SpecErrors if there are errors."""
        if self.errors or self.spec is None:
            raise SpecErrors(self.errors)
        return self.spec


def parse_base(raw: Mapping[str, Any], *, name: str, where: str, context: ValidationContext) -> BaseSpec:
    """Return the base declared by this raw data. `where` names its file in errors. Raises SpecErrors."""
    return try_parse_base(raw, name=name, where=where, context=context).unwrap()


def parse_cluster(raw: Mapping[str, Any], *, name: str, where: str, context: ValidationContext) -> ClusterSpec:
    """Return the cluster declared by this raw data. `where` names its file in errors. Raises SpecErrors.

    Without a base in the context, zones and addresses are not checked against it.
    """
    return try_parse_cluster(raw, name=name, where=where, context=context).unwrap()


def try_parse_base(
    raw: Mapping[str, Any], *, name: str, where: str, context: ValidationContext
) -> ParseResult[BaseSpec]:
    """Return the spec and its errors instead of raising, as `parse_base` does."""
    spec, findings = _parse_and_check(BaseSpecInput, raw, lambda spec: base_rules.check(spec, context))
    errors = _errors(name_rules.check_stack(name, context.region), findings, raw, where)
    if spec is None:
        return ParseResult(spec=None, errors=errors)
    stack = {"name": name, "region": context.region, "file": where}
    return ParseResult(spec=BaseSpec.model_construct(**{**_values(spec), **stack}), errors=errors)


def try_parse_cluster(
    raw: Mapping[str, Any], *, name: str, where: str, context: ValidationContext
) -> ParseResult[ClusterSpec]:
    """Return the spec and its errors instead of raising, as `parse_cluster` does."""
    spec, findings = _parse_and_check(ClusterSpecInput, raw, lambda spec: cluster_rules.check(spec, context))
    errors = _errors(name_rules.check_stack(name, context.region), findings, raw, where)
    if spec is None:
        return ParseResult(spec=None, errors=errors)
    stack = {"name": name, "region": context.region, "file": where, "base": spec.base or name}
    return ParseResult(spec=ClusterSpec.model_construct(**{**_values(spec), **stack}), errors=errors)


def try_parse_model(
    model: type[Input], raw: Mapping[str, Any], where: str, rules: Callable[[Input], Iterable[SpecFinding]]
) -> tuple[Input | None, tuple[SpecError, ...]]:
    """Return the parsed model of a file other than a stack file, and its errors in file order."""
    spec, findings = _parse_and_check(model, raw, rules)
    return spec, _errors((), findings, raw, where)


def _parse_and_check(
    model: type[Input], raw: Mapping[str, Any], rules: Callable[[Input], Iterable[SpecFinding]]
) -> tuple[Input | None, tuple[SpecFinding, ...]]:
    """Return the parsed model, and the findings about its shape and from the rules."""
    parsed = parse_model(model, raw)
    return parsed.model, (*parsed.findings, *parsed.certain_findings(rules))


def _values(spec: BaseModel) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in type(spec).model_fields}


def _errors(
    of_stack: Iterable[SpecFinding], findings: Iterable[SpecFinding], raw: Mapping[str, Any], where: str
) -> tuple[SpecError, ...]:
    """Return the findings as errors: the stack's first, the others in file order.

    Missing fields come after existing ones.
    """
    ordered = (*of_stack, *sorted(dict.fromkeys(findings), key=lambda finding: _rank(finding.loc, raw)))
    return tuple(finding.in_file(where) for finding in ordered)


def _rank(loc: Loc, raw: Any) -> tuple[int, ...]:
    rank: list[int] = []
    if loc[:1] == ("aws:region",):
        return (-1,)  # above the spec in the file
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
