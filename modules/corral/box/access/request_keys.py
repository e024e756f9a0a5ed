"""The condition keys that a request sets, besides those of its resources. Pure.

Sources: Service Authorization Reference, condition keys of each service; IAM User Guide, "AWS global condition context
keys"; Route 53 Developer Guide, "Using IAM policy conditions for fine-grained access control"; KMS Developer Guide,
"kms:RequestAlias".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

Fields = Mapping[str, Any]
# Parameters that are the value of a key, by the IAM prefix of the service.
_PLAIN: Mapping[tuple[str, str], str] = {
    ("cloudwatch", "Namespace"): "cloudwatch:namespace",
    ("iam", "AWSServiceName"): "iam:awsservicename",
    ("iam", "PermissionsBoundary"): "iam:permissionsboundary",
    ("iam", "PolicyArn"): "iam:policyarn",
    ("sns", "Endpoint"): "sns:endpoint",
    ("sns", "Protocol"): "sns:protocol",
}
_KEY_NAMES, _VALUE_NAMES = ("Key", "TagKey", "key"), ("Value", "TagValue", "value")
_TAG_LISTS = ("Tags", "tags", "ResourceTags")
_TAG_KEYS = ("TagKeys", "tagKeys", "ResourceTagKeys")
# Of a form: Tags.member.1.Key, TagSpecification.1.Tag.1.Key
_FORM_TAG = re.compile(r"(?P<tag>(?:Tags\.member|TagSpecification\.\d+\.Tag|Tag)\.\d+)\.Key")
_FORM_KEY = re.compile(r"TagKeys\.member\.\d+")
_ALIAS = re.compile(r"alias/.*")
_NAME_CHARACTERS = re.compile(r"[^a-z0-9_.-]")


def request_keys(prefix: str, fields: Fields, body: bytes = b"") -> dict[str, str | tuple[str, ...]]:
    """The keys in lower case, with a tuple of values for a key that may have several."""
    keys: dict[str, str | tuple[str, ...]] = {
        key: str(fields[name]) for (service, name), key in _PLAIN.items() if service == prefix and fields.get(name)
    }
    tags = request_tags(fields)
    keys |= {f"aws:requesttag/{key}".lower(): value for key, value in tags.items()}
    if named := (*tags, *_removed(fields)):
        keys["aws:tagkeys"] = named
    if prefix == "kms" and (alias := _ALIAS.search(str(fields.get("KeyId", "")))):
        keys["kms:requestalias"] = alias[0]
    if prefix == "route53" and body[:1] == b"<":
        keys |= _record_keys(body)
    if prefix == "route53" and fields.get("VPCId"):
        keys["route53:vpcs"] = (f"VPCId={fields['VPCId']},VPCRegion={fields.get('VPCRegion', '')}",)
    return keys


def request_tags(fields: Fields) -> dict[str, str]:
    """The tags that a request sets: of JSON in any of the services' shapes, or of a form."""
    found: dict[str, str] = {}
    for name in _TAG_LISTS:
        given = fields.get(name)
        if isinstance(given, Mapping):
            found |= {str(key): str(value) for key, value in given.items()}
        elif isinstance(given, list):
            found |= {_one_of(tag, _KEY_NAMES): _one_of(tag, _VALUE_NAMES) for tag in given}
    for key, value in fields.items():
        if match := _FORM_TAG.fullmatch(key):
            found[str(value)] = str(fields.get(f"{match['tag']}.Value", ""))
    return found


def xml_texts(body: bytes) -> dict[str, str]:
    """The texts of an XML body by the names of their elements; of several with one name, the last."""
    if body[:1] != b"<":
        return {}
    return {_local(one): one.text for one in ElementTree.fromstring(body).iter() if one.text}


def _removed(fields: Fields) -> Iterator[str]:
    for name in _TAG_KEYS:
        yield from map(str, fields.get(name) or ())
    yield from (str(value) for key, value in fields.items() if _FORM_KEY.fullmatch(key))


def _one_of(tag: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(tag[name]) for name in names if name in tag), "")


def _record_keys(body: bytes) -> dict[str, str | tuple[str, ...]]:
    """The names, types and actions of changed records."""
    changes = list(_elements(body, "Change"))
    if not changes:
        return {}
    values = {
        tag: tuple(sorted({str(one.text) for change in changes for one in change.iter() if _local(one) == tag}))
        for tag in ("Name", "Type", "Action")
    }
    return {
        "route53:changeresourcerecordsetsnormalizedrecordnames": tuple(map(_normalized, values["Name"])),
        "route53:changeresourcerecordsetsrecordtypes": values["Type"],
        "route53:changeresourcerecordsetsactions": values["Action"],
    }


def _normalized(name: str) -> str:
    """In lower case, without the trailing dot, with other characters than a-z, 0-9, - and _ in octal."""
    return _NAME_CHARACTERS.sub(lambda found: f"\\{ord(found[0]):03o}", name.lower().removesuffix("."))


def _elements(body: bytes, name: str) -> Iterator[ElementTree.Element]:
    return (one for one in ElementTree.fromstring(body).iter() if _local(one) == name)


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
