"""A later `corral up` on a running head: files are installed, and what must follow, follows. `corral-agent apply`.

Nothing is taken before all of it is there, nothing that Slurm would refuse, and nothing away from a job. What slurmctld
does not start with after all is taken back. One that is killed is done by the next (`pending`). docs/apply.md has the
table of what follows from what.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from corral.agent import pending, trial
from corral.agent.changes import SLURM, Conf, Step, steps
from corral.agent.errors import AgentError
from corral.agent.events import Event, Journal
from corral.agent.hosts import Daemon, Host, HostError, credentials, keeper, mariadb, slurmctld, slurmdbd
from corral.agent.install import Placement, install
from corral.agent.leaving import Texts, Used, merged
from corral.agent.pending import Pending
from corral.agent.places import is_needed, places
from corral.agent.store import Store
from corral.agent.tree_file import retold
from corral.model.cluster import ClusterPlan
from corral.model.jsons import from_json
from corral.model.manifest import MANIFEST, Manifest
from corral.model.markets import Role
from corral.model.node_names import fold

APPLIED = "applied"  # below the state volume: what slurmctld was last told, which a new head must not forget
LOCK = Path("/run/corral/apply.lock")
_ANSWERS_IN_S = 60.0
_STEP_S = 0.2

log = logging.getLogger("corral.agent")
Run = Callable[[Sequence[str]], str]


class Result(StrEnum):
    """How an apply can end."""

    APPLIED = "applied"
    NOTHING = "nothing"
    INCOMPLETE = "incomplete"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was done. `leaving`: nodes and queues that are kept only because they are in use."""

    result: Result
    changed: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    leaving: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The machine: how it starts daemons and runs commands, what of Slurm is in use, where its files and state are.

    `refusal`: why slurmctld would not take these files, see `trial`. `renewed`: the agent's code is another now.
    """

    host: Host
    run: Run
    used: Callable[[], Used]
    journal: Journal
    root: Path = Path("/")
    state: Path = Path("/var/lib/corral")
    refusal: Callable[[ClusterPlan, Mapping[str, bytes], Run], str] = trial.refusal
    renewed: bool = False
    answers_in_s: float = _ANSWERS_IN_S
    clock: Callable[[], float] = field(default=time.monotonic)

    @property
    def home(self) -> Path:
        """Where the agent is, and its marks."""
        return self.root / pending.HOME.relative_to("/")


def apply(store: Store, head: Head) -> Outcome:
    """Brings this head to what the store holds. Raises AgentError where it can be neither read nor done."""
    manifest = read_manifest(store)
    names = [name for name in (*manifest.files, *_own(store)) if is_needed(name, Role.HEAD)]
    files = {name: store.read(name) for name in names}
    missing = [name for name in files if name in manifest.files and _hash(files[name]) != manifest.files[name]]
    if missing:
        return Outcome(result=Result.INCOMPLETE, why=f"{missing[0]} is not the one that {MANIFEST} names: try again")
    plan = from_json(ClusterPlan, files["cluster.json"].decode())
    if head.renewed:
        pending.mark_renewed(head.home)
    left = _end_left(plan, head)
    before = _texts(head.root)
    now = merged(before, _texts_of(files), head.used())
    placements = (*places({**files, **_slurm_files(now.texts)}, Role.HEAD, None), *retold(head.root, now.texts.slurm))
    leaving = (*((fold(now.nodes),) if now.nodes else ()), *now.queues)
    changed = tuple(one for one in placements if _differs(one, head.root))
    if changed or pending.is_renewed(head.home):
        return _install(plan, changed, leaving, head)
    _remember(head, now.texts)
    return replace(left or Outcome(result=Result.NOTHING), leaving=leaving)


def carry_over(root: Path = Path("/"), state: Path = Path("/var/lib/corral")) -> None:
    """Before a slurmctld starts: what an earlier one had in use stays, though the files that were fetched are newer.

    Nobody can be asked what is in use, so whatever differs is kept; the next apply knows better.
    """
    held = state / APPLIED
    if not (root / "etc/slurm/slurm.conf").exists():
        return
    new = _texts(root)
    if (held / "slurm.conf").exists():
        old = Texts(slurm=(held / "slurm.conf").read_text(), gres=(held / "gres.conf").read_text())
        new = merged(old, new, Used(nodes=None, queues=None)).texts
        install(_placed(new), root)
    install(_placed(new, str(held)))
    install(retold(root, new.slurm), root)
    home = root / pending.HOME.relative_to("/")
    if left := pending.read(home):  # the files are others by now, and nodes still have to be told
        pending.write(replace(left, back=(), told=True), home)


def read_manifest(store: Store) -> Manifest:
    """What belongs to the configuration in the store. Raises StoreError."""
    return from_json(Manifest, store.read(MANIFEST).decode())


def _install(plan: ClusterPlan, changed: Sequence[Placement], leaving: tuple[str, ...], head: Head) -> Outcome:
    paths = tuple(one.path for one in changed)
    slurm = {Path(one.path).name: one.content for one in changed if Path(one.path).name in SLURM}
    agent = (Step.RESTART_AGENT,) * pending.is_renewed(head.home)
    if slurm and (why := head.refusal(plan, slurm, head.run)):
        head.journal.tell(Event.CONFIGURATION_REFUSED, f"slurmctld would not start: {why}", why=why)
        outcome = Outcome(result=Result.REFUSED, changed=paths, why=why)
    else:
        wanted = steps(paths, _conf(head.root), _conf(head.root, changed), plan.image.slurm_version)
        begun = Pending(paths=paths, steps=wanted, back=tuple(pending.former(one, head.root) for one in changed))
        pending.write(begun, head.home)
        install(changed, head.root)
        outcome = _follow(replace(begun, told=True), plan, head, leaving=leaving, agent=agent)
    if agent and outcome.result is Result.REFUSED:
        pending.postpone_renewed(head.home)  # the newer agent may not be able to read the older records
    elif agent:
        head.host.restart(credentials())
        # Last of all: who does this may be a child of the keeper, and go with it.
        head.host.restart(keeper(), pending.renewed_mark(head.home))
    return outcome


def _end_left(plan: ClusterPlan, head: Head) -> Outcome | None:
    """Ends what an apply was killed in. One that had told nobody has never been: slurmctld has the former files."""
    if (left := pending.read(head.home)) is None:
        return None
    log.warning("apply: an earlier one ended before it was done: %s", ", ".join(left.paths) or "files")
    if left.told:
        return _follow(left, plan, head)
    pending.take_back(left.back, head.root)
    pending.end(head.home)
    return None


def _follow(
    begun: Pending,
    plan: ClusterPlan,
    head: Head,
    *,
    leaving: tuple[str, ...] = (),
    agent: tuple[Step, ...] = (),
) -> Outcome:
    """Does the steps. `agent`: what the caller will do after them."""
    pending.write(begun, head.home)
    try:
        for step in begun.steps:
            _do(step, plan, head)
    except AgentError as error:
        return _take_back(begun, str(error), plan, head)
    done = (*begun.steps, *agent)
    _remember(head, _texts(head.root))
    head.journal.tell(
        Event.APPLIED,
        f"{', '.join(done) or 'files'}: {', '.join(begun.paths) or 'the agent'}",
        changed=list(begun.paths),
        steps=[str(step) for step in done],
        leaving=list(leaving),
    )
    pending.end(head.home)
    return Outcome(result=Result.APPLIED, changed=begun.paths, steps=done, leaving=leaving)


def _take_back(begun: Pending, why: str, plan: ClusterPlan, head: Head) -> Outcome:
    pending.take_back(begun.back, head.root)
    pending.write(Pending(paths=begun.paths, steps=(Step.RESTART_SLURMCTLD,), told=True), head.home)
    head.host.restart(_slurmctld(plan, head))
    pending.end(head.home)  # before it answers: one that is only slow must not be restarted again and again
    await_slurmctld(head.run, head.answers_in_s, head.clock)
    head.journal.tell(Event.CONFIGURATION_REFUSED, f"taken back: {why}", why=why)
    return Outcome(result=Result.REFUSED, changed=begun.paths, steps=begun.steps, why=why)


def _do(step: Step, plan: ClusterPlan, head: Head) -> None:
    match step:
        case Step.RELOAD_SSHD:
            head.host.reload_sshd()
        case Step.RESTART_MARIADB:
            head.host.restart(mariadb())
        case Step.RESTART_SLURMDBD:
            head.host.restart(slurmdbd(plan.image.slurm_sbin))
        case Step.RESTART_SLURMCTLD:
            head.host.restart(_slurmctld(plan, head))
            await_slurmctld(head.run, head.answers_in_s, head.clock)
        case Step.RECONFIGURE:
            head.run(("scontrol", "reconfigure"))
            await_slurmctld(head.run, head.answers_in_s, head.clock)
        case Step.RESTART_AGENT:
            pass


def _slurmctld(plan: ClusterPlan, head: Head) -> Daemon:
    return slurmctld(plan.image.slurm_sbin, str(head.state / "slurmctld"))


def await_slurmctld(run: Run, answers_in_s: float = _ANSWERS_IN_S, clock: Callable[[], float] = time.monotonic) -> None:
    """Returns when slurmctld answers. Raises HostError where it does not."""
    until = clock() + answers_in_s
    while True:
        try:
            if "is UP" in run(("scontrol", "ping")):
                return
        except HostError:
            pass
        if clock() > until:
            raise HostError(f"slurmctld does not answer after {answers_in_s:.0f} s - see its log")
        time.sleep(_STEP_S)


def _own(store: Store) -> Sequence[str]:
    """What a user put into the bucket, and no manifest names."""
    return [name for name in store.names() if name.startswith("own/")]


def _texts(root: Path) -> Texts:
    slurm, gres = (root / "etc/slurm" / name for name in ("slurm.conf", "gres.conf"))
    return Texts(slurm=slurm.read_text(encoding="utf-8"), gres=gres.read_text(encoding="utf-8"))


def _texts_of(files: Mapping[str, bytes]) -> Texts:
    return Texts(slurm=files["slurm/slurm.conf"].decode(), gres=files["slurm/gres.conf"].decode())


def _slurm_files(texts: Texts) -> Mapping[str, bytes]:
    return {"slurm/slurm.conf": texts.slurm.encode(), "slurm/gres.conf": texts.gres.encode()}


def _placed(texts: Texts, directory: str = "/etc/slurm") -> tuple[Placement, ...]:
    return (
        Placement(path=f"{directory}/slurm.conf", content=texts.slurm.encode()),
        Placement(path=f"{directory}/gres.conf", content=texts.gres.encode()),
    )


def _remember(head: Head, texts: Texts) -> None:
    install(_placed(texts, str(head.state / APPLIED)))


def _conf(root: Path, changed: Sequence[Placement] = ()) -> Conf:
    """What slurmctld reads, once these are installed."""
    new = {one.path: one.content.decode() for one in changed if one.path.startswith("/etc/slurm/")}

    def text(name: str) -> str:
        file, path = root / "etc/slurm" / name, f"/etc/slurm/{name}"
        if path in new:
            return new[path]
        return file.read_text(encoding="utf-8") if file.exists() else ""

    return Conf(slurm="\n".join(text(name) for name in ("slurm.conf", "host.conf", "own.conf")), gres=text("gres.conf"))


def _differs(placement: Placement, root: Path) -> bool:
    file = root / placement.path.lstrip("/")
    if not file.is_file():
        return True
    same_mode = file.stat().st_mode & 0o7777 == placement.mode
    return not placement.keeps and (file.read_bytes() != placement.content or not same_mode)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
