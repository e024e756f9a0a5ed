"""`make official`: live the shipped environments in the box through AWS's own provider, and through the stand-in.

Each is brought up, found unchanged by `corral up`, by the engine and by a refresh, changed, deleted, brought up again
with what was kept, and deleted with its data. `dev` also has a bootstrap, gets another head, queue, zone and instance
type, is swept for orphans, and is destroyed by the engine alone. At the end a job of `dev` runs on machines that are
namespaces. Prints each step, then how the providers differ, and writes both into docs/official-run.md.
ARGS='dev' runs only some environments. What has finished is kept in dist/official-run: a run that was stopped goes on
there, unless the product or the provider has changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from tools.official_run.comparison import call_differences, changing_calls, output_differences

from corral.box import client
from corral.box.provider import find_official
from corral.box.state.directory import StateDirectory
from corral.box.switches import Machines, Provider

CHECKOUT = Path(__file__).resolve().parents[2]
KEPT = CHECKOUT / "dist" / "official-run"
PAGE = CHECKOUT / "docs" / "official-run.md"
ENVIRONMENTS = ("dev", "train", "mixed")
MAX = re.compile(r"max: (\d+)")
DONE = re.compile(r"done: (.*) in \d")
LUSTRE = re.compile(r"    storage:\n      lustre:.*?(?=    queues:)", re.DOTALL)
QUEUE = """\
      - name: cpu
        instance_type: m7i.2xlarge
        nodes: {min: 0, max: 2}
        capacity:
          - market: on-demand
"""
# The user's bucket and reservations, roles that services make for the account, keys in their waiting time.
STAYS = re.compile(r"^s3/bucket corral-example-|^ec2/capacity-|^iam/role AWSServiceRole|scheduled for deletion")
STEP_LIMIT_S = 1800  # the provider waits ten minutes for the end of a Lustre


class Failed(Exception):
    """A step had another result than it should; the text says which."""


@dataclass(kw_only=True)
class ProviderRun:
    """What happened to one environment through one provider."""

    environment: str
    provider: Provider
    seconds: dict[str, float] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    resources: Sequence[Mapping[str, Any]] = ()


def main(names: Sequence[str]) -> int:
    """Return 0 if each step had the expected result through both providers, 1 if one had not, 2 for a wrong name."""
    if unknown := set(names) - set(ENVIRONMENTS):
        print(f"no environment {', '.join(sorted(unknown))}: there are {', '.join(ENVIRONMENTS)}", file=sys.stderr)
        return 2
    try:
        with ThreadPoolExecutor() as pool:  # most of the time the provider waits for a Lustre to go
            runs = list(pool.map(both_results, names or ENVIRONMENTS))
        for run, provider in zip(runs[0], (Provider.OFFICIAL, Provider.STAND_IN), strict=True):
            run.seconds["a job on machines (dev)"] = seconds_of_job(provider)
    except Failed as error:
        print(f"\nstopped: {error}", file=sys.stderr)
        return 1
    page = "\n".join(report(runs))
    print(f"\n{page}")
    if not names:
        PAGE.write_text(page + "\n", encoding="utf-8")
    return 0


def both_results(name: str) -> tuple[ProviderRun, ProviderRun]:
    """The results of an environment through AWS's own provider and through the stand-in."""
    return result_of(name, Provider.OFFICIAL), result_of(name, Provider.STAND_IN)


def result_of(name: str, provider: Provider) -> ProviderRun:
    """The kept result of the same sources, or that of a run now."""
    file = KEPT / f"{name}-{provider}.json"
    sources = fingerprint()
    if file.exists() and (kept := json.loads(file.read_text(encoding="utf-8")))["sources"] == sources:
        print(f"{name:6} {provider:9}    kept  {file}", flush=True)
        return ProviderRun(environment=name, provider=provider, **kept["result"])
    found = run_environment(name, provider)
    result = {"seconds": found.seconds, "calls": found.calls, "resources": found.resources}
    KEPT.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"sources": sources, "result": result}), encoding="utf-8")
    return found


@cache
def fingerprint() -> str:
    """What a result depends on: the product, the stacks, this tool, the provider that runs."""
    found = hashlib.sha256(str(find_official(os.environ)).encode())
    for folder in ("modules", "stacks", "templates", "tools/official_run"):
        for path in sorted(CHECKOUT.joinpath(folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                found.update(path.read_bytes())
    return found.hexdigest()


def run_environment(name: str, provider: Provider) -> ProviderRun:
    """The result of an environment in a box of its own."""
    result = ProviderRun(environment=name, provider=provider)
    with tempfile.TemporaryDirectory(prefix="corral-official-") as directory, session(Path(directory), result) as run:
        if name == "dev":
            run.corral("bootstrap", "bootstrap", "--box", "--yes")
        if name == "mixed":  # its VPC and capacity are the user's: the check creates what stands in for them
            run.corral("check", "check", name, "--box")
        before = run.inventory()
        run.up("up", "created", "created")
        run.up("up again", "same", "same")
        run.engine("the engine finds no change", "up --expect-no-changes --skip-preview --yes")
        run.engine("a refresh finds no change", "refresh --expect-no-changes --skip-preview --yes")
        run.edit(lambda text: MAX.sub(lambda found: f"max: {int(found[1]) + 2}", text, count=1))
        run.corral("preview of a change", "up", name, "--box", "--preview")
        run.up("change", "same", "updated")
        if name == "dev":
            run.edit(lambda text: text.replace("instance_type: m7i.2xlarge", "instance_type: m7i.4xlarge"))
            run.up("another head", "same", "updated|replaced")
            run.edit(lambda text: text.replace("instance_type: p4d.24xlarge", "instance_type: p5.48xlarge"))
            run.up("another instance type of a queue", "same", "created|updated|replaced|deleted")
            run.edit(lambda text: text.replace("    lifetime:", f"{QUEUE}    lifetime:"))
            run.up("another queue", "same", "created|updated")
            run.edit(lambda text: text.replace(QUEUE, ""))
            run.up("without that queue", "same", "updated|deleted")
            run.edit(lambda text: text.replace("use1-az1, use1-az2]", "use1-az1, use1-az2, use1-az6]"), "base")
            run.up("another zone", "created|updated", "created|updated")
            run.edit(lambda text: text.replace(", use1-az6]", "]"), "base")
            run.up("without that zone", "updated|deleted", "updated|deleted")
            run.corral("nothing is orphaned", "cleanup", name, "--box")
        result.resources = run.resources()
        run.corral("down", "down", name, "--box", "--with-base", "--yes")
        run.up("up with what was kept", "created", "created")
        if name == "dev":
            run.engine("destroyed by the engine alone", "destroy --skip-preview --yes")
            run.up("up after that", "created", "created")
        run.corral("down with the data", "down", name, "--box", "--with-base", "--delete-data", name, "--yes")
        run.require_nothing_left(before)
        result.calls = changing_calls(run.calls())
    return result


def seconds_of_job(provider: Provider) -> float:
    """The seconds that a job of two nodes takes, from `connect` to its end, in a box whose instances are machines."""
    result = ProviderRun(environment="dev", provider=provider)
    with (
        tempfile.TemporaryDirectory(prefix="corral-official-") as directory,
        session(Path(directory), result, Machines.NAMESPACE) as run,
    ):
        run.edit(lambda text: LUSTRE.sub("", text))  # its deletion takes ten minutes, and its life was seen above
        run.up("up with machines", "created", "created")
        output = run.corral("job", "connect", "dev", "--box", "--", "srun", "-N2", "-D/", "printenv", "SLURMD_NODENAME")
        if sorted(output.split())[-2:] != ["train-1", "train-2"]:
            raise Failed(f"dev, {provider}, job: it printed {output!r}, not the names of two nodes")
        run.corral("down with machines", "down", "dev", "--box", "--with-base", "--delete-data", "dev", "--yes")
    return result.seconds["job"]


class Session:
    """A copy of the stacks, a box, and the commands that run on both."""

    def __init__(self, directory: Path, result: ProviderRun) -> None:
        self.result, self.project, self.box = result, directory / "project", directory / "box"
        shutil.copytree(CHECKOUT / "stacks", self.project / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
        self.environment = {**os.environ, "CORRAL_BOX_DIR": str(self.box), "COLUMNS": "100", "NO_COLOR": "1"}

    def up(self, step: str, base: str, cluster: str) -> None:
        """Bring the environment up; the stacks' results match these patterns, and nothing else happens to them."""
        output = self.corral(step, "up", self.result.environment, "--box", "--yes")
        results = DONE.findall(output)
        for summary, pattern in zip(results, (base, cluster), strict=True):
            allowed = rf"(?:\d+ (?:{pattern}|same|imported|kept)(?:, )?)+"
            if not re.fullmatch(allowed, summary):
                raise Failed(
                    f"{self.result.environment}, {self.result.provider}, {step}: {summary}, not only {pattern}"
                )

    def corral(self, step: str, *words: str) -> str:
        """Run a corral command as this step; return its output."""
        return self._run(step, [sys.executable, "-m", "corral.cli", *words], self.environment)

    def engine(self, step: str, words: str) -> None:
        """Run a command of the engine in both stacks, the cluster first where it deletes."""
        stacks = ("cluster", "base") if words.startswith("destroy") else ("base", "cluster")
        excluded = {"base": " --exclude-protected"} if words.startswith("destroy") else {}  # what every `down` keeps
        commands = [
            f'pulumi -C "$CORRAL_STACKS/{stack}" -s {self.result.environment} {words}{excluded.get(stack, "")}'
            for stack in stacks
        ]
        script = f'eval "$({sys.executable} -m corral.cli box env)" && {" && ".join(commands)}'
        self._run(step, ["bash", "-c", script], self.environment)

    def edit(self, change: Callable[[str], str], stack: str = "cluster") -> None:
        """Change a stack's file."""
        file = self.project / f"stacks/{stack}/Pulumi.{self.result.environment}.yaml"
        before = file.read_text(encoding="utf-8")
        after = change(before)
        if after == before:
            raise Failed(f"{file.name} has nothing to change")
        file.write_text(after, encoding="utf-8")

    def resources(self) -> Sequence[Mapping[str, Any]]:
        """The resources in the states of both stacks."""
        found: list[Mapping[str, Any]] = []
        for file in sorted(StateDirectory(self.box).stack_states.glob(f"*/{self.result.environment}.json")):
            found += json.loads(file.read_text(encoding="utf-8"))["checkpoint"]["latest"].get("resources", ())
        return found

    def calls(self) -> Iterator[Mapping[str, Any]]:
        """All API calls of this result."""
        with StateDirectory(self.box).calls.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    def inventory(self) -> frozenset[str]:
        """What exists in the box, each as its type and id."""
        from corral.box.daemon.daemon_process import send_request

        held = send_request(client.running_address(self.box), "GET", "/_box/inventory")
        return frozenset(f"{kind} {one}" for kind, ids in held.items() for one in ids)

    def require_nothing_left(self, before: frozenset[str]) -> None:
        """Raise Failed if more is left than there was before, and than what nobody deletes (STAYS)."""
        if wrong := sorted(one for one in self.inventory() - before if not STAYS.search(one)):
            raise Failed(f"{self.result.environment}, {self.result.provider}: left over: {', '.join(wrong)}")

    def _run(self, step: str, command: Sequence[str], environment: Mapping[str, str]) -> str:
        begin = monotonic()
        done = subprocess.run(
            command, cwd=self.project, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=STEP_LIMIT_S,
        )  # fmt: skip
        self.result.seconds[step] = monotonic() - begin
        print(
            f"{self.result.environment:6} {self.result.provider:9} {self.result.seconds[step]:6.0f} s  {step}",
            flush=True,
        )
        if done.returncode:
            raise Failed(f"{self.result.environment}, {self.result.provider}, {step}:\n{done.stdout[-4000:]}")
        return done.stdout


@contextmanager
def session(directory: Path, result: ProviderRun, machines: Machines = Machines.NONE) -> Iterator[Session]:
    """A session whose box runs until the end of the block."""
    found = Session(directory, result)
    client.start(found.box, provider=result.provider, machines=machines)
    try:
        yield found
    finally:
        client.stop(found.box)


def report(runs: Sequence[tuple[ProviderRun, ProviderRun]]) -> Iterator[str]:
    """The lines of the page."""
    yield "# The shipped environments through AWS's own provider"
    yield ""
    yield (
        f"Last `make official`: {datetime.now(UTC):%Y-%m-%d}; plugin {find_official(os.environ).parent.name}, the"
        f" SDK pulumi-aws {version('pulumi-aws')}."
    )
    yield "Every step had the expected result through both providers."
    yield ""
    yield "Seconds of each step: AWS's own provider / the stand-in."
    yield ""
    yield f"| step | {' | '.join(official.environment for official, _ in runs)} |"
    yield f"|---{'|---' * len(runs)}|"
    for step in runs[0][0].seconds:
        cells = (f"{a.seconds[step]:.0f} / {b.seconds[step]:.0f}" if step in a.seconds else "-" for a, b in runs)
        yield f"| {step} | {' | '.join(cells)} |"
    yield ""
    yield "## Calls that change something, where the numbers differ"
    yield ""
    yield "| environment | action | AWS's own provider | stand-in |"
    yield "|---|---|---|---|"
    for official, stand_in in runs:
        for action, theirs, ours in call_differences(official.calls, stand_in.calls):
            yield f"| {official.environment} | {action} | {theirs} | {ours} |"
    yield ""
    yield "## Outputs of resources that differ"
    yield ""
    yield "| type | property | AWS's own provider | stand-in |"
    yield "|---|---|---|---|"
    rows = {row for a, b in runs for row in output_differences(a.resources, b.resources)}
    for kind, name, official_value, value in sorted(rows):
        yield f"| {kind} | {name} | {_cell(official_value)} | {_cell(value)} |"


def _cell(text: str) -> str:
    return (text if len(text) <= 80 else f"{text[:79]}…").replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
