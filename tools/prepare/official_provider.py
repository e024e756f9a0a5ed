"""AWS's own provider for Pulumi, built once per user from Go modules (tools/official_provider) where Pulumi has none.

HashiCorp's terraform-provider-aws is cut to the services that corral uses first: all of it takes hours to compile.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pulumi_cli import fetch_go, find_go, go_build, go_environment
from steps import ROOT, CannotPrepareError, Step, appearing_whole, cache_dir, say, show_end

NAME = "pulumi-resource-aws"
MODULE = ROOT / "tools" / "official_provider"
# The fork adds only the package `xpprovider`, which exports HashiCorp's constructors. Module, version and checksum:
# Go's checksum database does not have every mirror's modules, so the sums are pinned here.
UPSTREAM = (
    "github.com/upbound/terraform-provider-aws@v0.0.0-20260305123303-f7691456b787",
    "h1:dJlp2eNgY/iVKTPINdguYlHbHc9CtXBZKmQmqYq0REs=",
)
UPSTREAM_VERSION = "6.34.0"  # HashiCorp's release at that commit
BRIDGE = (
    "github.com/pulumi/pulumi-terraform-bridge/v3@v3.124.0",
    "h1:KCNDfuMt6hrOLLb+ejwFrp5LJpv3oqnd4OEueSjpz14=",
)
SERVICES = frozenset(
    (
        *("budgets", "cloudwatch", "ec2", "efs", "fsx", "iam", "kms", "logs", "meta", "resourcegroupstaggingapi"),
        *("route53", "s3", "s3control", "secretsmanager", "sns", "ssm", "sts"),
    )
)
SERVICE = "github.com/hashicorp/terraform-provider-aws/internal/service/"
SDK = "github.com/aws/aws-sdk-go-v2/service/"


class OfficialProvider(Step):
    """The provider that Pulumi installed, or the one that is built here."""

    name = "official-provider"

    def missing(self) -> Sequence[str]:
        """Return a line if there is none."""
        return () if find() else (f"{cached()}: AWS's own provider; about 15 minutes, 5 GB in Go's caches",)

    def install(self) -> None:
        """Build it into the cache."""
        go = find_go() or fetch_go()
        say("Building AWS's own provider once, about 15 minutes")
        with appearing_whole(cached().parent) as unfinished:
            sources = unfinished / "sources"
            copy_go_files(fetch(go, *UPSTREAM), sources / "upstream")
            cut(sources / "upstream")
            copy_go_files(fetch(go, *BRIDGE), sources / "bridge")
            # It alone needs the generators of SDKs, a quarter of all packages.
            (sources / "bridge" / "pkg" / "pf" / "tfbridge" / "provider_mux.go").unlink()
            shutil.copytree(MODULE, sources / "provider")
            stamp = f"-X main.version={version()} -X main.upstream={UPSTREAM_VERSION}"
            reason = "AWS's own provider could not be built: check the network, or GOPROXY."
            go_build(go, sources / "provider", ".", stamp, unfinished / NAME, reason)
            shutil.rmtree(sources)

    def ready(self) -> str:
        """Return its path."""
        return f"AWS's own provider ({find()})"


def find() -> Path | None:
    """Return the plugin that Pulumi installed for this user, or the one in the cache."""
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    for path in (home / "plugins" / f"resource-aws-v{version()}" / NAME, cached()):
        if os.access(path, os.X_OK):
            return path
    return None


def version() -> str:
    """Return the version of the SDK that programs use; the engine accepts no older provider."""
    found = re.search(r"^pulumi-aws==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise CannotPrepareError("requirements.lock has no pulumi-aws.")
    return found.group(1)


def cached() -> Path:
    """Return the plugin's path in the cache, which changes with everything that it is built from."""
    parts = [version().encode(), Path(__file__).read_bytes(), *(path.read_bytes() for path in sorted(MODULE.iterdir()))]
    return cache_dir() / f"official-provider-{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}" / NAME


def fetch(go: str, module: str, checksum: str) -> Path:
    """Return the directory of a module in Go's cache. Raises CannotPrepareError for another checksum."""
    environment = {**go_environment(), "GONOSUMDB": module.partition("@")[0], "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        [go, "mod", "download", "-json", module],
        cwd="/", env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: Mapping[str, str] = json.loads(done.stdout) if done.stdout.startswith("{") else {"Error": done.stderr}
    if "Error" in found:
        show_end(found["Error"])
        raise CannotPrepareError(f"{module} cannot be fetched: check the network, or GOPROXY.")
    if found["Sum"] != checksum:
        raise CannotPrepareError(f"{module} has the checksum {found['Sum']}, not {checksum}: it is not what was tried.")
    return Path(found["Dir"])


def copy_go_files(module: Path, to: Path) -> None:
    """Copy a module without its tests and documents; what it embeds stays."""

    def unwanted(directory: str, names: list[str]) -> set[str]:
        top = {"website", "docs", "examples", ".ci", ".github"} if Path(directory) == module else set()
        return {name for name in names if name in top or name in ("testdata", "tests") or name.endswith("_test.go")}

    shutil.copytree(module, to, ignore=unwanted)
    for path in (to, *to.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)  # Go's cache is read-only


def cut(upstream: Path) -> None:
    """Remove all services but SERVICES from a copy of terraform-provider-aws, and what only they need."""
    services = upstream / "internal" / "service"
    for directory in services.iterdir():
        if directory.is_dir() and directory.name not in SERVICES:
            shutil.rmtree(directory)
    for sweeper in services.rglob("sweep*.go"):
        sweeper.unlink()
    for name in ("acctest", "generate", "sweep"):  # only HashiCorp's tests use them
        shutil.rmtree(upstream / "internal" / name, ignore_errors=True)
    # The one resource of EC2 that calls another service.
    (services / "ec2" / "vpc_ipam_organization_admin_account.go").unlink()
    replace(
        services / "ec2" / "service_package_gen.go",
        r"\t\t\{\n\t\t\tFactory:  resourceIPAMOrganizationAdminAccount,\n(?:\t\t\t.*\n)*\t\t\},\n",
        lambda _: "",
    )
    packages = upstream / "internal" / "provider" / "sdkv2" / "service_packages_gen.go"
    replace(packages, rf'^\t"{re.escape(SERVICE)}(\w+)"\n', lambda found: found[0] if found[1] in SERVICES else "")
    replace(packages, r"^\t\t(\w+)\.ServicePackage\(ctx\),\n", lambda found: found[0] if found[1] in SERVICES else "")
    cut_clients(upstream)


def cut_clients(upstream: Path) -> None:
    """Remove the clients of AWS's SDK that nothing calls any more."""
    clients = upstream / "internal" / "conns" / "awsclient_gen.go"
    called = {
        name
        for path in (upstream / "internal").rglob("*.go")
        if path != clients
        for name in re.findall(r"\b(\w+Client)\(ctx", path.read_text(encoding="utf-8"))
    }
    method = r"^func \(c \*AWSClient\) (\w+)\(ctx context\.Context\) \*\w+\.Client \{\n.*\n\}\n\n?"
    replace(clients, method, lambda found: found[0] if found[1] in called else "")
    text = clients.read_text(encoding="utf-8")
    imported = rf'^\t(?:(\w+) )?"{re.escape(SDK)}(\w+)"\n'
    replace(clients, imported, lambda found: found[0] if f"*{found[1] or found[2]}.Client " in text else "")


def replace(path: Path, pattern: str, replacement: Callable[[re.Match[str]], str]) -> None:
    """Replace what matches in a file."""
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(pattern, replacement, text, flags=re.MULTILINE), encoding="utf-8")
