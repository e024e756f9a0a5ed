"""Plan a cluster's people from its spec."""

from corral.model.accounts import EVERYBODY
from corral.model.users import AccessPlan, DirectoryPlan, GroupPlan, UserPlan, derived_id
from corral.spec.models.access import AccessSpec, DirectorySpec


def plan_access(spec: AccessSpec) -> AccessPlan:
    """Return who may log in, by name, each with an id."""
    groups = sorted({group for user in spec.users.values() for group in user.groups})
    return AccessPlan(
        ssh_keys=spec.ssh_keys,
        users=tuple(
            UserPlan(
                name=name,
                uid=user.uid or derived_id(name),
                groups=tuple(sorted(user.groups)),
                ssh_keys=user.ssh_keys,
                admin=user.admin,
                account=user.account or EVERYBODY,
            )
            for name, user in sorted(spec.users.items())
        ),
        groups=tuple(GroupPlan(name=name, gid=spec.groups.get(name) or derived_id(name)) for name in groups),
        removed_jobs=spec.removed_jobs,
        shows_jobs=spec.shows_jobs,
        directory=_directory(spec.directory) if spec.directory else None,
    )


def _directory(spec: DirectorySpec) -> DirectoryPlan:
    return DirectoryPlan(
        servers=spec.servers,
        base=spec.base,
        filter=spec.filter,
        schema=spec.scheme,
        bind_dn=spec.bind_dn,
        bind_secret=spec.bind_secret,
        admin_group=spec.admin_group or "",
        ca=spec.ca or "",
        min_id=spec.min_id,
        max_id=spec.max_id,
    )
