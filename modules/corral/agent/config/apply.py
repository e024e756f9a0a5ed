"""Apply a later `corral up` to a running head: install its files, then take the steps that they require.

`corral-agent apply`. Files are installed once all are fetched and Slurm accepts them; running jobs keep what they use.
If slurmctld does not start with them, the former files are restored. The next apply completes one that was killed
(`apply_journal`). docs/apply.md has the table of changes and steps.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from corral.agent.alertmanager import restart_alertmanager
from corral.agent.config import apply_journal, slurm_validation
from corral.agent.config.apply_journal import PendingApply
from corral.agent.config.diff import SLURM, ApplyStep, SlurmConf, required_steps
from corral.agent.config.file_placements import is_needed, placements_for
from corral.agent.config.merge import ConfTexts, InUse, merge_conf
from corral.agent.config.signed_manifest import remember_version
from corral.agent.config.topology_conf import topology_conf_for
from corral.agent.config_store import IncompleteUpload, ManifestStore
from corral.agent.containers import compile_containers
from corral.agent.directory import stop_directory
from corral.agent.errors import AgentError
from corral.agent.events import Event, EventLog
from corral.agent.file_install import Placement, install
from corral.agent.host.base import Daemon, Host, HostError, autoscaler, credentials, mariadb, slurmctld, slurmdbd
from corral.agent.host.packages import head_packages
from corral.agent.prometheus import restart_prometheus
from corral.agent.users.sync import make_homes, record_changes
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.model.node_names import fold
from corral.model.serialization import from_json

APPLIED = "applied"  # on the state volume: slurmctld's last configuration, which a new head continues
LOCK = Path("/run/corral/apply.lock")
_ANSWERS_IN_S = 60.0
_STEP_S = 0.2

log = logging.getLogger("corral.agent")
Run = Callable[[Sequence[str]], str]


class ApplyResult(StrEnum):
    """The results of an apply."""

    APPLIED = "applied"
    NOTHING = "nothing"
    INCOMPLETE = "incomplete"
    REFUSED = "refused"


EXIT_CODES = {ApplyResult.APPLIED: 0, ApplyResult.NOTHING: 0, ApplyResult.INCOMPLETE: 3, ApplyResult.REFUSED: 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOutcome:
    """What was done. `pending_removal`: removed nodes and queues that stay until they are free."""

    result: ApplyResult
    changed: tuple[str, ...] = ()
    steps: tuple[ApplyStep, ...] = ()
    pending_removal: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyContext:
    """The head that files are applied to: its host, commands, files and state.

    `used`: returns what is in use. `refusal`: why slurmctld rejects these files, see `slurm_validation`. `renewed`:
    the agent's code has just been replaced. `sync_accounts`: brings slurmdbd to the plan. `sync_directory`: lets SSSD
    follow the plan.
    """

    host: Host
    run: Run
    used: Callable[[], InUse]
    journal: EventLog
    sync_accounts: Callable[[ClusterPlan], object]
    sync_directory: Callable[[ClusterPlan], object]
    root: Path = Path("/")
    state: Path = Path("/var/lib/corral")
    refusal: Callable[[ClusterPlan, Mapping[str, bytes], Run], str] = slurm_validation.why_refused
    renewed: bool = False
    answers_in_s: float = _ANSWERS_IN_S
    clock: Callable[[], float] = field(default=time.monotonic)

    @property
    def home(self) -> Path:
        """The directory of the agent and its marks."""
        return self.root / apply_journal.HOME.relative_to("/")


def apply_config(store: ManifestStore, context: ApplyContext) -> ApplyOutcome:
    """Apply the configuration in the store to this head. Raises AgentError if it cannot be read or applied."""
    manifest = store.manifest()
    try:
        files = store.read(manifest, (name for name in manifest.files if is_needed(name, Role.HEAD)))
    except IncompleteUpload as error:
        return ApplyOutcome(result=ApplyResult.INCOMPLETE, reason=str(error))
    remember_version(manifest.version, context.root)
    plan = from_json(ClusterPlan, files["cluster.json"].decode())
    if context.renewed:
        apply_journal.mark_renewed(context.home)
    left = _complete_interrupted(plan, context)
    before = _texts(context.root)
    now = merge_conf(before, _texts_of(files), context.used())
    placements = (
        *placements_for({**files, **_slurm_files(now.texts)}, Role.HEAD, None),
        *topology_conf_for(context.root, now.texts.slurm),
    )
    pending_removal = (*((fold(now.nodes),) if now.nodes else ()), *now.queues)
    changed = tuple(one for one in placements if _differs(one, context.root))
    if changed or apply_journal.is_renewed(context.home):
        return _install(plan, changed, pending_removal, context)
    _remember(context, now.texts)
    return replace(left or ApplyOutcome(result=ApplyResult.NOTHING), pending_removal=pending_removal)


def carry_over(root: Path = Path("/"), state: Path = Path("/var/lib/corral")) -> None:
    """Add what an earlier head had in use to the newer files, before slurmctld starts on a new head.

    What is in use is not known yet, so all former nodes and queues stay; the next apply removes the free ones.
    """
    held = state / APPLIED
    install(_own(held, Path("/etc/slurm")), root)
    if not (root / "etc/slurm/slurm.conf").exists():
        return
    new = _texts(root)
    if (held / "slurm.conf").exists():
        old = ConfTexts(slurm=(held / "slurm.conf").read_text(), gres=(held / "gres.conf").read_text())
        new = merge_conf(old, new, InUse(nodes=None, queues=None)).texts
        install(_placed(new), root)
    install(_placed(new, str(held)))
    install(topology_conf_for(root, new.slurm), root)
    home = root / apply_journal.HOME.relative_to("/")
    if left := apply_journal.read(home):  # files have changed meanwhile, and the nodes must still receive them
        apply_journal.write(replace(left, back=(), installed=True), home)


def _install(
    plan: ClusterPlan, changed: Sequence[Placement], pending_removal: tuple[str, ...], context: ApplyContext
) -> ApplyOutcome:
    paths = tuple(one.path for one in changed)
    slurm = {Path(one.path).name: one.content for one in changed if Path(one.path).name in SLURM}
    agent = (ApplyStep.RESTART_AGENT,) * apply_journal.is_renewed(context.home)
    if slurm and (reason := context.refusal(plan, slurm, context.run)):
        context.journal.log_event(Event.CONFIGURATION_REFUSED, f"slurmctld would not start: {reason}", reason=reason)
        outcome = ApplyOutcome(result=ApplyResult.REFUSED, changed=paths, reason=reason)
    else:
        wanted = required_steps(paths, _conf(context.root), _conf(context.root, changed), plan.image.slurm_version)
        begun = PendingApply(
            paths=paths, steps=wanted, back=tuple(apply_journal.former(one, context.root) for one in changed)
        )
        apply_journal.write(begun, context.home)
        install(changed, context.root)
        outcome = _follow(replace(begun, installed=True), plan, context, pending_removal=pending_removal, agent=agent)
    if agent and outcome.result is ApplyResult.REFUSED:
        apply_journal.postpone_renewed(context.home)  # the newer agent may not read the older records
    elif agent:
        context.host.restart(credentials())
        # Last: this process may be a child of the autoscaler, and ends with it.
        context.host.restart(autoscaler(), apply_journal.renewed_mark(context.home))
    return outcome


def _complete_interrupted(plan: ClusterPlan, context: ApplyContext) -> ApplyOutcome | None:
    """Complete an apply that was killed, or undo it if slurmctld does not have its files yet."""
    if (left := apply_journal.read(context.home)) is None:
        return None
    log.warning("apply: an earlier one was interrupted: %s", ", ".join(left.paths) or "files")
    if left.installed:
        return _follow(left, plan, context)
    apply_journal.restore(left.back, context.root)
    apply_journal.clear(context.home)
    return None


def _follow(
    begun: PendingApply,
    plan: ClusterPlan,
    context: ApplyContext,
    *,
    pending_removal: tuple[str, ...] = (),
    agent: tuple[ApplyStep, ...] = (),
) -> ApplyOutcome:
    """Take the steps. `agent`: steps that the caller takes afterwards."""
    apply_journal.write(begun, context.home)
    try:
        for step in begun.steps:
            _do(step, plan, context)
    except AgentError as error:
        return _roll_back(begun, str(error), plan, context)
    done = (*begun.steps, *agent)
    _remember(context, _texts(context.root))
    context.journal.log_event(
        Event.APPLIED,
        f"{', '.join(done) or 'files'}: {', '.join(begun.paths) or 'the agent'}",
        changed=list(begun.paths),
        steps=[str(step) for step in done],
        pending_removal=list(pending_removal),
    )
    apply_journal.clear(context.home)
    return ApplyOutcome(result=ApplyResult.APPLIED, changed=begun.paths, steps=done, pending_removal=pending_removal)


def _roll_back(begun: PendingApply, reason: str, plan: ClusterPlan, context: ApplyContext) -> ApplyOutcome:
    apply_journal.restore(begun.back, context.root)
    apply_journal.write(
        PendingApply(paths=begun.paths, steps=(ApplyStep.RESTART_SLURMCTLD,), installed=True), context.home
    )
    context.host.restart(_slurmctld(plan, context))
    apply_journal.clear(context.home)  # before slurmctld answers: a slow one must not be restarted again and again
    await_slurmctld(context.run, context.answers_in_s, context.clock)
    context.journal.log_event(Event.CONFIGURATION_REFUSED, f"rolled back: {reason}", reason=reason)
    return ApplyOutcome(result=ApplyResult.REFUSED, changed=begun.paths, steps=begun.steps, reason=reason)


def _do(step: ApplyStep, plan: ClusterPlan, context: ApplyContext) -> None:
    match step:
        case ApplyStep.COMPILE_CONTAINERS:
            compile_containers(plan, head_packages(plan), context.host)
        case ApplyStep.SYNC_USERS:
            changes = context.host.sync_users(plan.access, plan.admin_homes)
            record_changes(changes, plan.access, context.journal, context.root)
            make_homes(plan.access, context.host.make_home)
            stop_directory(plan, context.host, context.root)
        case ApplyStep.SYNC_DIRECTORY if plan.access.directory:
            _sync_directory(plan, context)
        case ApplyStep.RELOAD_SSHD:
            context.host.reload_sshd()
        case ApplyStep.RESTART_MARIADB:
            context.host.restart(mariadb())
        case ApplyStep.RESTART_SLURMDBD:
            context.host.restart(slurmdbd(plan.image.slurm_sbin))
        case ApplyStep.SYNC_ACCOUNTS:
            context.sync_accounts(plan)
        case ApplyStep.RESTART_SLURMCTLD:
            context.host.restart(_slurmctld(plan, context))
            await_slurmctld(context.run, context.answers_in_s, context.clock)
        case ApplyStep.RECONFIGURE:
            context.run(("scontrol", "reconfigure"))
            await_slurmctld(context.run, context.answers_in_s, context.clock)
        case ApplyStep.RESTART_PROMETHEUS:
            restart_prometheus(plan, context.host, context.root)
        case ApplyStep.RESTART_ALERTMANAGER:
            restart_alertmanager(plan, context.host, context.root)
        case ApplyStep.SYNC_DIRECTORY | ApplyStep.RESTART_AGENT:
            pass


def _sync_directory(plan: ClusterPlan, context: ApplyContext) -> None:
    """A failure is an event: a rollback would bring back the former directory without the former password."""
    try:
        context.sync_directory(plan)
    except AgentError as error:
        context.journal.log_event(Event.DIRECTORY_FAILED, str(error), reason=str(error))


def _slurmctld(plan: ClusterPlan, context: ApplyContext) -> Daemon:
    return slurmctld(plan.image.slurm_sbin, str(context.state / "slurmctld"))


def await_slurmctld(run: Run, answers_in_s: float = _ANSWERS_IN_S, clock: Callable[[], float] = time.monotonic) -> None:
    """Wait until slurmctld answers. Raises HostError if it does not."""
    until = clock() + answers_in_s
    while True:
        try:
            if "is UP" in run(("scontrol", "ping")):
                return
        except HostError:
            pass
        if clock() > until:
            raise HostError(f"slurmctld did not answer within {answers_in_s:.0f} s - see its log")
        time.sleep(_STEP_S)


def _texts(root: Path) -> ConfTexts:
    slurm, gres = (root / "etc/slurm" / name for name in ("slurm.conf", "gres.conf"))
    return ConfTexts(slurm=slurm.read_text(encoding="utf-8"), gres=gres.read_text(encoding="utf-8"))


def _texts_of(files: Mapping[str, bytes]) -> ConfTexts:
    return ConfTexts(slurm=files["slurm/slurm.conf"].decode(), gres=files["slurm/gres.conf"].decode())


def _slurm_files(texts: ConfTexts) -> Mapping[str, bytes]:
    return {"slurm/slurm.conf": texts.slurm.encode(), "slurm/gres.conf": texts.gres.encode()}


def _placed(texts: ConfTexts, directory: str = "/etc/slurm") -> tuple[Placement, ...]:
    return (
        Placement(path=f"{directory}/slurm.conf", content=texts.slurm.encode()),
        Placement(path=f"{directory}/gres.conf", content=texts.gres.encode()),
    )


def _remember(context: ApplyContext, texts: ConfTexts) -> None:
    install((*_placed(texts, str(context.state / APPLIED)), *_own(context.root / "etc/slurm", context.state / APPLIED)))


def _own(source: Path, target: Path) -> tuple[Placement, ...]:
    """The user's own lines of slurm.conf, which no manifest names, from one directory to another."""
    file = source / "own.conf"
    return (Placement(path=str(target / "own.conf"), content=file.read_bytes()),) if file.exists() else ()


def _conf(root: Path, changed: Sequence[Placement] = ()) -> SlurmConf:
    """The text of slurmctld's files once these are installed."""
    new = {one.path: one.content.decode() for one in changed if one.path.startswith("/etc/slurm/")}

    def text(name: str) -> str:
        file, path = root / "etc/slurm" / name, f"/etc/slurm/{name}"
        if path in new:
            return new[path]
        return file.read_text(encoding="utf-8") if file.exists() else ""

    return SlurmConf(
        slurm="\n".join(text(name) for name in ("slurm.conf", "host.conf", "own.conf")), gres=text("gres.conf")
    )


def _differs(placement: Placement, root: Path) -> bool:
    file = root / placement.path.lstrip("/")
    if not file.is_file():
        return True
    same_mode = file.stat().st_mode & 0o7777 == placement.mode
    return not placement.only_if_missing and (file.read_bytes() != placement.content or not same_mode)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
