"""slurmdbd.conf, MariaDB's settings for it, and the accounts of Slurm; all on the head only.

`model` holds the names of socket, data and database, because the agent creates these.
"""

from corral.catalog.slurm.conf_keys import is_known
from corral.model.accounting_paths import DATABASE, DATABASE_DIR, DATABASE_PID_FILE, DATABASE_SOCKET, DATABASE_USER
from corral.model.accounts import accounts_text
from corral.model.cluster import ClusterPlan
from corral.render.conf_line import Value, slurm_line
from corral.render.host_conf import EC2
from corral.render.nearest_release import written_release
from corral.render.slurm_conf import private_data
from corral.render.templates import fill

# slurmdbd warns below half of what Slurm recommends: 1 GiB in 22.05 (as_mysql, _check_database_variables;
# observed: it warns at 384 MiB, not at 512), 4 GiB in later releases, and never more than half of the memory (Slurm's
# documentation, "Accounting and Resource Limits"). All machines of a box share one memory.
_POOL_SHARE = 4
_SMALLEST_POOL_MIB, _LARGEST_POOL_MIB = 512, 4096


def accounting_files(plan: ClusterPlan) -> dict[str, str]:
    """The text of each file by its path below the cluster's prefix."""
    return {
        "accounting/accounts": accounts_text(plan.accounts, {user.name: user.account for user in plan.access.users}),
        "accounting/mariadb.cnf": mariadb_conf(plan),
        "accounting/slurmdbd.conf": slurmdbd_conf(plan),
    }


def slurmdbd_conf(plan: ClusterPlan) -> str:
    """The text of slurmdbd.conf. It contains no secret, but Slurm requires mode 0600."""
    release = written_release(plan.image.slurm_version)
    settings: dict[str, Value] = {
        "DbdHost": plan.head.host_name,
        "SlurmUser": EC2.slurm_user,
        "StorageUser": DATABASE_USER,
        "StorageLoc": DATABASE,
        "PrivateData": private_data(plan.access),
        "DisableArchiveCommands": True if is_known(release, "DisableArchiveCommands") else None,
    }
    return fill("slurm/slurmdbd.conf.j2", lines={key: slurm_line({key: value}) for key, value in settings.items()})


def mariadb_conf(plan: ClusterPlan) -> str:
    """The text of MariaDB's settings."""
    return fill(
        "slurm/mariadb.cnf.j2",
        data_dir=DATABASE_DIR,
        socket=DATABASE_SOCKET,
        pid_file=DATABASE_PID_FILE,
        buffer_pool_mib=_SMALLEST_POOL_MIB if plan.image.box else buffer_pool_mib(plan.head.memory_mib),
    )


def buffer_pool_mib(memory_mib: int) -> int:
    """The size of MariaDB's buffer pool, from the head's memory."""
    return min(max(memory_mib // _POOL_SHARE, _SMALLEST_POOL_MIB), _LARGEST_POOL_MIB)
