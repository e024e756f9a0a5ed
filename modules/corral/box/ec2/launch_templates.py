"""Launch templates: DescribeLaunchTemplateVersions returns all data of a version."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.utils import parse_user_data

from corral.box.api_errors import ApiError
from corral.box.ec2.launch import template_version

PAGE = 200  # the largest page of DescribeLaunchTemplates and DescribeLaunchTemplateVersions


class TemplateActions:
    """The actions on launch templates that moto answers differently from AWS."""

    def create_launch_template(self: Any) -> ActionResult:
        """CreateLaunchTemplate; the template's tags are not part of its data."""
        self.error_on_dryrun()
        template = self.ec2_backend.create_launch_template(
            self._get_param("LaunchTemplateName"),
            self._get_param("VersionDescription"),
            self._launch_template_data(),
            self._parse_tag_specification("launch-template"),
        )
        return ActionResult({"LaunchTemplate": self._shown(template)})

    def create_launch_template_version(self: Any) -> ActionResult:
        """CreateLaunchTemplateVersion, based on a source version if one is given."""
        self.error_on_dryrun()
        named = {name: self._get_param(name) for name in ("LaunchTemplateId", "LaunchTemplateName")}
        template = template_version(self.ec2_backend, named).template
        data = self._launch_template_data()
        if source := self._get_param("SourceVersion"):
            data = {**template_version(self.ec2_backend, {**named, "Version": source}).data, **data}
        version = template.create_version(data, self._get_param("VersionDescription"))
        return ActionResult({"LaunchTemplateVersion": self._shown_version(version)})

    def modify_launch_template(self: Any) -> ActionResult:
        """ModifyLaunchTemplate: sets the default version."""
        self.error_on_dryrun()
        named = {name: self._get_param(name) for name in ("LaunchTemplateId", "LaunchTemplateName")}
        wanted = self._get_param("DefaultVersion") or self._get_param("SetDefaultVersion")
        version = template_version(self.ec2_backend, {**named, "Version": wanted})
        version.template.default_version_number = version.number
        return ActionResult({"LaunchTemplate": self._shown(version.template)})

    def describe_launch_templates(self: Any) -> ActionResult:
        """DescribeLaunchTemplates; an unknown id or name is an error."""
        backend = self.ec2_backend
        for template_id in self._get_param("LaunchTemplateIds", []):
            backend.get_launch_template(template_id)
        for name in self._get_param("LaunchTemplateNames", []):
            backend.get_launch_template_by_name(name)
        templates = backend.describe_launch_templates(
            template_names=self._get_param("LaunchTemplateNames", []),
            template_ids=self._get_param("LaunchTemplateIds", []),
            filters=self._filters_from_querystring(),
        )
        page, token = self._page([self._shown(template) for template in templates])
        return ActionResult({"LaunchTemplates": page, "NextToken": token})

    def describe_launch_template_versions(self: Any) -> ActionResult:
        """DescribeLaunchTemplateVersions."""
        found = self.ec2_backend.describe_launch_template_versions(
            template_name=self._get_param("LaunchTemplateName"),
            template_id=self._get_param("LaunchTemplateId"),
            versions=self._get_param("Versions", []),
            min_version=self._get_int_param("MinVersion"),
            max_version=self._get_int_param("MaxVersion"),
            max_results=None,
        )
        page, token = self._page([self._shown_version(version) for _, version in found])
        return ActionResult({"LaunchTemplateVersions": page, "NextToken": token})

    def delete_launch_template_versions(self: Any) -> ActionResult:
        """DeleteLaunchTemplateVersions: refused, because the box's version numbers have no gaps."""
        raise ApiError("InvalidAction", "The box keeps every version of a launch template; delete the template.")

    def _launch_template_data(self: Any) -> dict[str, Any]:
        data = dict(self._get_param("LaunchTemplateData", {}))
        if "UserData" in data:
            data["UserData"] = parse_user_data(data["UserData"])
        return data

    def _page(self: Any, items: list[Any]) -> tuple[list[Any], str | None]:
        start = int(self._get_param("NextToken") or 0)
        end = start + min(self._get_int_param("MaxResults", PAGE), PAGE)
        return items[start:end], str(end) if end < len(items) else None

    def _shown(self: Any, template: Any) -> dict[str, Any]:
        return {
            "CreateTime": template.create_time,
            "CreatedBy": f"arn:{self.partition}:iam::{self.current_account}:root",
            "DefaultVersionNumber": template.default_version_number,
            "LatestVersionNumber": template.latest_version_number,
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "Tags": [{"Key": key, "Value": value} for key, value in self.ec2_backend.tags.get(template.id, {}).items()],
        }

    def _shown_version(self: Any, version: Any) -> dict[str, Any]:
        return {
            "CreateTime": version.create_time,
            "CreatedBy": f"arn:{self.partition}:iam::{self.current_account}:root",
            "DefaultVersion": version.template.is_default(version),
            "LaunchTemplateData": version.data,
            "LaunchTemplateId": version.template.id,
            "LaunchTemplateName": version.template.name,
            "VersionDescription": version.description,
            "VersionNumber": version.number,
        }
