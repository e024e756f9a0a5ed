"""Data repository associations: the links between a directory of a Lustre file system and a prefix in S3."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from moto.core.responses import ActionResult
from moto.ec2.utils import random_id

from corral.box.api_errors import ApiError
from corral.box.delays import LINK_CREATION, LINK_IMPORT, seconds
from corral.box.switches import Switches

MAX_ASSOCIATIONS = 8  # associations of one file system (FSx for Lustre user guide, data repositories)
CHUNK_MIB = 1024
NO_BACKUPS = "Backups cannot be created on S3-linked file systems"


class Association:
    """One link between a directory and a prefix."""

    def __init__(self, backend: Any, request: Mapping[str, Any]) -> None:
        self.id = random_id("dra")
        self.backend = backend
        self.request = dict(request)
        self.file_system_id = str(request["FileSystemId"])
        self.s3 = dict(request.get("S3") or {})
        self.chunk_mib = int(request.get("ImportedFileChunkSize") or CHUNK_MIB)
        self.created = time.time()
        self.deleted: float | None = None

    @property
    def arn(self) -> str:
        """The Amazon resource name."""
        return f"{self.backend.arn_prefix}:association/{self.file_system_id}/{self.id}"

    @property
    def state(self) -> str:
        """The lifecycle in lower case, for the inventory."""
        return self.lifecycle.lower()

    @property
    def path(self) -> PurePosixPath:
        """The directory in the file system."""
        return PurePosixPath(self.request.get("FileSystemPath") or "/")

    @property
    def lifecycle(self) -> str:
        """CREATING, AVAILABLE, MISCONFIGURED or DELETING."""
        if self.deleted:
            return "DELETING"
        if time.time() - self.created < seconds(LINK_CREATION) + import_s(self._objects()):
            return "CREATING"
        return "AVAILABLE" if self._bucket_exists() else "MISCONFIGURED"

    def describe(self) -> dict[str, Any]:
        """The association as in the API."""
        lifecycle = self.lifecycle
        shown = {
            "AssociationId": self.id,
            "ResourceARN": self.arn,
            "FileSystemId": self.file_system_id,
            "Lifecycle": lifecycle,
            "FileSystemPath": str(self.path),
            "DataRepositoryPath": self.request["DataRepositoryPath"],
            "BatchImportMetaDataOnCreate": bool(self.request.get("BatchImportMetaDataOnCreate")),
            "ImportedFileChunkSize": self.chunk_mib,
            "S3": self.s3,
            "Tags": self.backend.list_tags_for_resource(self.arn),
            "CreationTime": self.created,
        }
        if lifecycle == "MISCONFIGURED":
            shown["FailureDetails"] = {"Message": f"The bucket of {self.request['DataRepositoryPath']} does not exist."}
        return shown

    def _objects(self) -> int:
        """How many objects it imports."""
        target = urlsplit(self.request["DataRepositoryPath"])
        bucket = self._buckets().get(target.netloc)
        if bucket is None or not self.request.get("BatchImportMetaDataOnCreate"):
            return 0
        return sum(key.startswith(target.path.strip("/")) for key in bucket.keys)

    def _bucket_exists(self) -> bool:
        return urlsplit(self.request["DataRepositoryPath"]).netloc in self._buckets()

    def _buckets(self) -> Mapping[str, Any]:
        from moto.s3.models import s3_backends

        buckets: Mapping[str, Any] = s3_backends[self.backend.account_id][self.backend.partition].buckets
        return buckets


def import_s(objects: int, held: Switches | None = None) -> float:
    """How long a new link imports so many objects in a box with these switches (default: this one), in seconds."""
    return seconds(LINK_IMPORT, held) * objects / 1_000_000


class Associations:
    """The part of the FSx backend that holds associations."""

    associations: dict[str, Association]

    def create_association(self: Any, request: Mapping[str, Any]) -> Association:
        """Create an association. Raises ApiError if it overlaps with another."""
        held = self.get_file_system(request["FileSystemId"])
        if held.lustre["DeploymentType"] == "SCRATCH_1":
            raise ApiError("BadRequest", "Data repository associations are not supported for SCRATCH_1.")
        if held.lifecycle != "AVAILABLE":
            raise ApiError("BadRequest", f"File system {held.id} is {held.lifecycle}, not AVAILABLE.")
        if held.lustre.get("AutomaticBackupRetentionDays"):
            raise ApiError("BadRequest", NO_BACKUPS)
        made = Association(self, request)
        _check(made, self.associations_of(held.id))
        self.associations[made.id] = made
        self.tagger.tag_resource(made.arn, request.get("Tags") or [])
        return made

    def associations_of(self, file_system_id: str) -> list[Association]:
        """The associations of a file system, without deleted ones."""
        return [
            held for held in self.associations.values() if held.file_system_id == file_system_id and not held.deleted
        ]

    def get_association(self: Any, association_id: str) -> Association:
        """The association of that id."""
        self.remove_deleted()
        if association_id not in self.associations:
            raise ApiError("DataRepositoryAssociationNotFound", f"The association {association_id} does not exist.")
        return self.associations[association_id]  # type: ignore[no-any-return]


class AssociationActions:
    """The actions on data repository associations."""

    def create_data_repository_association(self: Any) -> ActionResult:
        """CreateDataRepositoryAssociation."""
        return ActionResult({"Association": self.fsx.create_association(dict(self.params)).describe()})

    def describe_data_repository_associations(self: Any) -> ActionResult:
        """DescribeDataRepositoryAssociations, in pages."""
        fsx = self.fsx
        fsx.remove_deleted()
        ids = self._get_param("AssociationIds", [])
        found = [fsx.get_association(named) for named in ids] or list(fsx.associations.values())
        for condition in self._get_param("Filters", []):
            if condition["Name"] != "file-system-id":
                raise NotImplementedError(f"The filter '{condition['Name']}'")
            found = [held for held in found if held.file_system_id in condition["Values"]]
        page, token = self.page([held.describe() for held in found])
        return ActionResult({"Associations": page, "NextToken": token})

    def update_data_repository_association(self: Any) -> ActionResult:
        """UpdateDataRepositoryAssociation."""
        held = self.fsx.get_association(self._get_param("AssociationId"))
        held.chunk_mib = int(self._get_param("ImportedFileChunkSize") or held.chunk_mib)
        held.s3.update(self._get_param("S3", {}))
        return ActionResult({"Association": held.describe()})

    def delete_data_repository_association(self: Any) -> ActionResult:
        """DeleteDataRepositoryAssociation."""
        held = self.fsx.get_association(self._get_param("AssociationId"))
        held.deleted = held.deleted or time.time()
        with_data = bool(self._get_param("DeleteDataInFileSystem"))
        return ActionResult(
            {"AssociationId": held.id, "Lifecycle": held.lifecycle, "DeleteDataInFileSystem": with_data}
        )


def _check(made: Association, others: list[Association]) -> None:
    if not made.path.is_absolute():
        raise ApiError("BadRequest", f"FileSystemPath '{made.path}' must start with /.")
    target = urlsplit(made.request["DataRepositoryPath"])
    if target.scheme != "s3" or not target.netloc:
        raise ApiError("BadRequest", f"DataRepositoryPath '{made.request['DataRepositoryPath']}' is not an S3 path.")
    if len(others) >= MAX_ASSOCIATIONS:
        raise ApiError(
            "ServiceLimitExceeded", f"A file system has at most {MAX_ASSOCIATIONS} data repository associations."
        )
    for other in others:
        if _overlap(made.path, other.path):
            raise ApiError("BadRequest", f"FileSystemPath '{made.path}' overlaps with '{other.path}' of {other.id}.")
        if _overlap(_s3_path(made), _s3_path(other)):
            raise ApiError("BadRequest", f"DataRepositoryPath '{made.request['DataRepositoryPath']}' overlaps with that"
                          f" of {other.id}.")  # fmt: skip


def _s3_path(association: Association) -> PurePosixPath:
    target = urlsplit(association.request["DataRepositoryPath"])
    return PurePosixPath("/", target.netloc, target.path.strip("/"))


def _overlap(one: PurePosixPath, other: PurePosixPath) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
