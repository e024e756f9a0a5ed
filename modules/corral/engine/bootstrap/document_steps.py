"""The Systems Manager documents by which corral reaches heads: how to check and how to create each.

They have the same names and content for every state backend of the region. A changed one becomes a new default version.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from corral.engine.bootstrap.step import BootstrapTarget, Clients, Outdated, Step
from corral.model.tags import STATE_TAG
from corral.plan.iam.head_documents import DOCUMENTS, HeadDocument


def _document_step(document: HeadDocument) -> Step:
    def look(client: Clients, target: BootstrapTarget) -> bool:
        found = client("ssm").get_document(Name=document.name)  # the default version
        if json.loads(found["Content"]) != document.content:
            raise Outdated(f"its version {found['DocumentVersion']} differs and stays as an older version")
        return True

    def make(client: Clients, target: BootstrapTarget) -> bool:
        ssm, text = client("ssm"), json.dumps(document.content)
        tags = [{"Key": STATE_TAG, "Value": target.name}]
        version = {"Content": text, "DocumentFormat": "JSON", "VersionName": sha256(text.encode()).hexdigest()}
        try:
            ssm.create_document(Name=document.name, DocumentType=document.type, Tags=tags, **version)
            return True
        except ssm.exceptions.DocumentAlreadyExists:
            if json.loads(ssm.get_document(Name=document.name)["Content"]) == document.content:
                return False
        number = _version_number(ssm, document.name, version)
        ssm.update_document_default_version(Name=document.name, DocumentVersion=number)
        return True

    return Step(key=document.name, description=f"document {document.name}", service="ssm", exists=look, create=make)


def _version_number(ssm: Any, name: str, version: dict[str, str]) -> str:
    """The number of the document's version with this content: a new one, or an earlier one that is not the default."""
    try:
        made = ssm.update_document(Name=name, DocumentVersion="$LATEST", **version)
        return str(made["DocumentDescription"]["DocumentVersion"])
    except (ssm.exceptions.DuplicateDocumentContent, ssm.exceptions.DuplicateDocumentVersionName):
        return str(ssm.get_document(Name=name, VersionName=version["VersionName"])["DocumentVersion"])


DOCUMENT_STEPS = tuple(map(_document_step, DOCUMENTS))
