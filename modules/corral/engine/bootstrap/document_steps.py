"""The Systems Manager documents by which corral reaches heads: how to check and how to create each.

They have the same names and content for every state backend of the region. A changed one becomes the default version,
and the others are deleted: who may send a command may name a version, too.
"""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from typing import Any

from corral.engine.bootstrap.step import BootstrapTarget, Clients, Outdated, Step
from corral.model.tags import STATE_TAG
from corral.plan.iam.head_documents import DOCUMENTS, HeadDocument


def _document_step(document: HeadDocument) -> Step:
    def look(client: Clients, target: BootstrapTarget) -> bool:
        ssm = client("ssm")
        found = ssm.get_document(Name=document.name)  # the default version
        if json.loads(found["Content"]) != document.content:
            raise Outdated(f"its version {found['DocumentVersion']} differs and is deleted")
        if others := _other_versions(ssm, document.name):
            raise Outdated(f"its versions {', '.join(others)} can be called and are deleted")
        return True

    def make(client: Clients, target: BootstrapTarget) -> bool:
        ssm, text = client("ssm"), json.dumps(document.content)
        tags = [{"Key": STATE_TAG, "Value": target.name}]
        version = {"Content": text, "DocumentFormat": "JSON", "VersionName": sha256(text.encode()).hexdigest()}
        try:
            ssm.create_document(Name=document.name, DocumentType=document.type, Tags=tags, **version)
            return True
        except ssm.exceptions.DocumentAlreadyExists:
            is_current = json.loads(ssm.get_document(Name=document.name)["Content"]) == document.content
        if not is_current:
            number = _version_number(ssm, document.name, version)
            ssm.update_document_default_version(Name=document.name, DocumentVersion=number)
        others = _other_versions(ssm, document.name)
        for number in others:
            with suppress(ssm.exceptions.InvalidDocument):  # another process just did the same
                ssm.delete_document(Name=document.name, DocumentVersion=number)
        return bool(others) or not is_current

    return Step(key=document.name, description=f"document {document.name}", service="ssm", exists=look, create=make)


def _version_number(ssm: Any, name: str, version: dict[str, str]) -> str:
    """The number of the document's version with this content: a new one, or an earlier one that is not the default."""
    try:
        made = ssm.update_document(Name=name, DocumentVersion="$LATEST", **version)
        return str(made["DocumentDescription"]["DocumentVersion"])
    except (ssm.exceptions.DuplicateDocumentContent, ssm.exceptions.DuplicateDocumentVersionName):
        return str(ssm.get_document(Name=name, VersionName=version["VersionName"])["DocumentVersion"])


def _other_versions(ssm: Any, name: str) -> list[str]:
    """The numbers of the document's versions that are not the default one."""
    pages = ssm.get_paginator("list_document_versions").paginate(Name=name)
    versions = [one for page in pages for one in page["DocumentVersions"]]
    return [str(one["DocumentVersion"]) for one in versions if not one["IsDefaultVersion"]]


DOCUMENT_STEPS = tuple(map(_document_step, DOCUMENTS))
