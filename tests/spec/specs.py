"""Two good files that use every field, and a project that holds them with edits applied."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.spec.yaml.yaml_reader import read_document

BASE = """\
encryptionsalt: v1:abc
config:
  aws:region: us-east-1
  corral-base:spec:
    network:
      cidr: 10.64.0.0/16
      zones: [use1-az1, use1-az2]
      interface_endpoints: [ssm, ec2]
    storage:
      home: {throughput: elastic}
    budget:
      usd_per_month: 2000
      notify: [ml-team@example.com]
    tags: {team: ml}
"""
CLUSTER = """\
config:
  aws:region: us-east-1
  corral-cluster:imageProfile: box-debian-12
  corral-cluster:spec:
    base: dev
    head:
      instance_type: m7i.2xlarge
      zone: use1-az2
      address: 10.64.32.20
      root_gib: 150
      state_gib: 50
    image:
      profile: ubuntu-24.04-dlami
    storage:
      lustre:
        - name: scratch
          size_gib: 1200
          deployment: SCRATCH_2
          mount: /scratch
          zone: use1-az1
          data:
            - path: /data
              s3: s3://corral-example-corpus/tokens
              import: [NEW, CHANGED]
              export: [NEW]
    queues:
      - name: train
        instance_type: p4d.24xlarge
        nodes: {min: 1, max: 4}
        suspend_after: 10m
        capacity:
          - market: spot
            zones: [use1-az1]
            max_price: 8.5
          - market: on-demand
        efa: on
        time_limit: 6h
      - name: small
        instance_type: g5.xlarge
        nodes: {max: 8}
        capacity:
          - market: spot
    lifetime:
      ttl: 12h
      idle: 1h
    tags: {project: llm}
"""
Edit = tuple[str, str]


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with each old part, which must occur once, replaced by its new one."""
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times")
        text = text.replace(old, new)
    return text


def as_pulumi(content: str | bytes) -> Mapping[str, Any]:
    """The config that a Pulumi program gets of a stack file with this content: the fields of objects are sorted.

    Nothing where corral finds mistakes in its YAML, some of which Pulumi lets pass.
    """
    document = read_document(content if isinstance(content, bytes) else content.encode())
    if document.mistakes:
        return {}
    found: Mapping[str, Any] = json.loads(json.dumps(document.value["config"], sort_keys=True))
    return found


def project(directory: Path, *, base: str | bytes = BASE, cluster: str | bytes = CLUSTER, name: str = "dev") -> Path:
    """A project in this directory with one environment."""
    for kind, content in (("base", base), ("cluster", cluster)):
        folder = directory / "stacks" / kind
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "Pulumi.yaml").write_text(f"name: corral-{kind}\nruntime: python\n")
        (folder / f"Pulumi.{name}.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    return directory
