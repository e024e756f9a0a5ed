"""FSx for Lustre: file systems with lifecycle states and with network interfaces in their subnet.

`fsx_lustre` validates sizes and settings, `fsx_groups` the rules of security groups; `fsx_associations` links file
systems to S3. The box has no other file system types.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any

import moto.fsx.urls
from moto.core.resource_tagging import TaggedResource
from moto.core.responses import ActionResult, BaseResponse, EmptyResult
from moto.fsx.models import FSxBackend

from corral.box.api.fsx_associations import NO_BACKUPS, Association, AssociationActions, Associations
from corral.box.api.fsx_file_system import FileSystem
from corral.box.api.fsx_groups import GroupRule, check_group_rules
from corral.box.api.fsx_lustre import check_capacity, check_lustre, check_root_squash, count_servers
from corral.box.api_errors import ApiError
from corral.box.delays import FSX_DELETION, FSX_RULES, LINK_DELETION, Delay, seconds


class BoxFSx(Associations, FSxBackend):
    """The FSx of one account and region."""

    _url_module = moto.fsx.urls

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.file_systems: dict[str, FileSystem] = {}
        self.associations: dict[str, Association] = {}

    @property
    def arn_prefix(self) -> str:
        """The prefix of its resources' ARNs."""
        return f"arn:{self.partition}:fsx:{self.region_name}:{self.account_id}"

    @property
    def ec2(self) -> Any:
        """The EC2 of the same account and region."""
        from moto.ec2.models import ec2_backends

        return ec2_backends[self.account_id][self.region_name]

    def remove_deleted(self) -> None:
        """Remove what has been DELETING long enough."""
        now = time.time()
        collections: tuple[tuple[dict[str, Any], Delay], ...] = (
            (self.file_systems, FSX_DELETION),
            (self.associations, LINK_DELETION),
        )
        for held, delay in collections:
            for identity, thing in list(held.items()):
                if thing.deleted and now - thing.deleted >= seconds(delay):
                    del held[identity]

    def create_lustre(self, request: Mapping[str, Any]) -> FileSystem:
        """Create a file system with one interface for each of its servers."""
        token = request.get("ClientRequestToken")
        known = [
            held for held in self.file_systems.values() if token and held.request.get("ClientRequestToken") == token
        ]
        if known:
            return self._check_repeated(known[0], request)
        check_lustre(
            request.get("StorageCapacity"),
            request.get("StorageType") or "SSD",
            request.get("LustreConfiguration") or {},
            request.get("KmsKeyId"),
        )
        subnet = self._subnet(request.get("SubnetIds") or [])
        self._check_groups(request, subnet)
        made = FileSystem(self, request, subnet.vpc_id)
        self._create_server_interfaces(made, made.capacity_gib, made.lustre)
        self.file_systems[made.id] = made
        self.tagger.tag_resource(made.arn, request.get("Tags") or [])
        return made

    def get_file_system(self, file_system_id: str) -> FileSystem:
        """The file system of that id."""
        self.remove_deleted()
        if file_system_id not in self.file_systems:
            raise ApiError("FileSystemNotFound", f"File system '{file_system_id}' does not exist.")
        return self.file_systems[file_system_id]

    def update_lustre(self, file_system_id: str, capacity: int | None, changes: Mapping[str, Any]) -> FileSystem:
        """Grow a file system or change its settings."""
        held = self.get_file_system(file_system_id)
        if capacity is not None and capacity != held.capacity_gib:
            if capacity < held.capacity_gib:
                raise ApiError("BadRequest", f"Storage capacity cannot shrink from {held.capacity_gib} GiB.")
            check_capacity(
                capacity,
                held.lustre["DeploymentType"],
                held.storage,
                held.lustre.get("PerUnitStorageThroughput"),
            )
        check_root_squash(changes)
        if changes.get("AutomaticBackupRetentionDays") and self.associations_of(held.id):
            raise ApiError("BadRequest", NO_BACKUPS)
        wanted_gib, lustre = capacity or held.capacity_gib, {**held.lustre, **changes}
        self._create_server_interfaces(held, wanted_gib, lustre)
        held.capacity_gib, held.lustre = wanted_gib, lustre
        return held

    def delete_lustre(self, file_system_id: str) -> FileSystem:
        """Start the deletion of a file system; its interfaces and associations are deleted at once."""
        held = self.get_file_system(file_system_id)
        if not held.deleted:
            held.deleted = time.time()
            for eni_id in held.interfaces:
                self.ec2.remove_interface(self.ec2.get_network_interface(eni_id))
            for association in self.associations.values():
                if association.file_system_id == held.id:
                    association.deleted = held.deleted
        return held

    def resource(self, arn: str) -> FileSystem | Association:
        """The file system or association with this ARN."""
        self.remove_deleted()
        everything: list[FileSystem | Association] = [*self.file_systems.values(), *self.associations.values()]
        for held in everything:
            if held.arn == arn:
                return held
        raise ApiError("ResourceNotFound", f"The resource {arn} does not exist.")

    def iter_tagged_resources(self) -> Iterator[TaggedResource]:
        """File systems and associations, for the tagging API."""
        self.remove_deleted()
        for kind, held in (("file-system", self.file_systems), ("association", self.associations)):
            for thing in held.values():
                tags = self.tagger.get_tag_dict_for_resource(thing.arn)
                yield TaggedResource(arn=thing.arn, tags=tags, resource_type=f"fsx:{kind}")

    def _create_server_interfaces(self, held: FileSystem, capacity: int, lustre: Mapping[str, Any]) -> None:
        """Create an interface for each server that has none. Raises ApiError if the subnet lacks addresses for all."""
        subnet = self._subnet(held.request["SubnetIds"])
        missing = count_servers(capacity, held.storage, lustre) - len(held.interfaces)
        if missing > subnet.free_addresses:
            raise ApiError("InvalidNetworkSettings", f"The subnet '{subnet.id}' does not have enough free IP addresses"
                          f" for {missing} file servers.")  # fmt: skip
        for _ in range(missing):
            eni = self.ec2.create_network_interface(subnet, group_ids=held.request.get("SecurityGroupIds") or [])
            self.ec2.assign_to_service(eni, "fsx", f"Created by Amazon FSx for {held.id}")
            held.interfaces.append(eni.id)

    def _check_repeated(self, known: FileSystem, request: Mapping[str, Any]) -> FileSystem:
        if known.request != dict(request):
            raise ApiError("IncompatibleParameterError", "The same ClientRequestToken was used with other parameters.")
        return known

    def _subnet(self, subnet_ids: list[str]) -> Any:
        if len(subnet_ids) != 1:
            raise ApiError("BadRequest", "Exactly one subnet ID is required for Lustre file systems.")
        try:
            return self.ec2.get_subnet(subnet_ids[0])
        except Exception as error:
            raise ApiError("InvalidNetworkSettings", f"The subnet ID '{subnet_ids[0]}' does not exist.") from error

    def _check_groups(self, request: Mapping[str, Any], subnet: Any) -> None:
        """Raises ApiError if a group is missing, or if the groups' rules separate the servers from each other."""
        ids = request.get("SecurityGroupIds") or [self.ec2.get_default_security_group(subnet.vpc_id).id]
        try:
            self.ec2.check_groups(ids, subnet.vpc_id)
        except ApiError as error:
            raise ApiError("InvalidNetworkSettings", error.message) from error
        groups = [self.ec2.get_security_group_from_id(id) for id in ids]
        rules = [rule for group in groups for held in (group.ingress_rules, group.egress_rules) for rule in held]
        oldest = time.time() - seconds(FSX_RULES)
        rules = [rule for rule in rules if getattr(rule, "created", 0.0) <= oldest]
        efa = bool((request.get("LustreConfiguration") or {}).get("EfaEnabled"))
        check_group_rules(_group_rules(rules), ids, IPv4Network(subnet.cidr_block), efa=efa)


def _group_rules(rules: list[Any]) -> list[GroupRule]:
    """Moto's rules with a group or an IPv4 range as their peer."""
    found = []
    for rule in rules:
        peer = rule.source_group.get("GroupId") or (IPv4Network(rule.cidr_ipv4) if rule.cidr_ipv4 else None)
        if peer is not None:
            found.append(
                GroupRule(
                    outbound=rule.is_egress,
                    protocol=rule.ip_protocol,
                    peer=peer,
                    first=rule.from_port or 0,
                    last=rule.to_port or 0,
                )
            )
    return found


class BoxFSxResponse(AssociationActions, BaseResponse):
    """The actions of FSx."""

    def __init__(self) -> None:
        super().__init__(service_name="fsx")
        self.automated_parameter_parsing = True

    @property
    def fsx(self) -> Any:
        """The backend of the call."""
        from moto.fsx.models import fsx_backends

        return fsx_backends[self.current_account][self.region]

    def create_file_system(self) -> ActionResult:
        """CreateFileSystem."""
        if self._get_param("FileSystemType") != "LUSTRE":
            raise NotImplementedError(f"FSx for {self._get_param('FileSystemType')}")
        return ActionResult({"FileSystem": self.fsx.create_lustre(dict(self.params)).describe()})

    def describe_file_systems(self) -> ActionResult:
        """DescribeFileSystems, in pages."""
        ids = self._get_param("FileSystemIds", [])
        self.fsx.remove_deleted()
        found = [self.fsx.get_file_system(named) for named in ids] or list(self.fsx.file_systems.values())
        page, token = self.page([held.describe() for held in found])
        return ActionResult({"FileSystems": page, "NextToken": token})

    def update_file_system(self) -> ActionResult:
        """UpdateFileSystem."""
        held = self.fsx.update_lustre(
            self._get_param("FileSystemId"),
            self._get_param("StorageCapacity"),
            self._get_param("LustreConfiguration", {}),
        )
        return ActionResult({"FileSystem": held.describe()})

    def delete_file_system(self) -> ActionResult:
        """DeleteFileSystem."""
        held = self.fsx.delete_lustre(self._get_param("FileSystemId"))
        return ActionResult({"FileSystemId": held.id, "Lifecycle": held.lifecycle})

    def create_backup(self) -> ActionResult:
        """CreateBackup: refused for scratch and linked file systems as on AWS; the box supports no backups."""
        held = self.fsx.get_file_system(self._get_param("FileSystemId"))
        if held.lustre["DeploymentType"].startswith("SCRATCH"):
            raise ApiError("BadRequest", f"Backups are not supported for {held.lustre['DeploymentType']}.")
        if self.fsx.associations_of(held.id):
            raise ApiError("BadRequest", NO_BACKUPS)
        raise NotImplementedError("backups of persistent file systems")

    def describe_backups(self) -> ActionResult:
        """DescribeBackups: there are none."""
        return ActionResult({"Backups": []})

    def tag_resource(self) -> ActionResult:
        """TagResource."""
        held = self.fsx.resource(self._get_param("ResourceARN"))
        self.fsx.tagger.tag_resource(held.arn, self._get_param("Tags", []))
        return EmptyResult()

    def untag_resource(self) -> ActionResult:
        """UntagResource."""
        held = self.fsx.resource(self._get_param("ResourceARN"))
        self.fsx.tagger.untag_resource_using_names(held.arn, self._get_param("TagKeys", []))
        return EmptyResult()

    def list_tags_for_resource(self) -> ActionResult:
        """ListTagsForResource."""
        held = self.fsx.resource(self._get_param("ResourceARN"))
        return ActionResult({"Tags": self.fsx.list_tags_for_resource(held.arn)})

    def page(self, items: list[Any]) -> tuple[list[Any], str | None]:
        """A page of the items and the token of the next one."""
        start = int(self._get_param("NextToken") or 0)
        end = start + int(self._get_param("MaxResults") or len(items) or 1)
        return items[start:end], str(end) if end < len(items) else None


def install() -> None:
    """Replace moto's FSx with the box's."""
    from moto.fsx.models import fsx_backends

    moto.fsx.urls.url_paths["{0}/$"] = BoxFSxResponse.dispatch
    fsx_backends.backend = BoxFSx
