"""Where a cluster's records of jobs are: what the rendered files, the policies and the agent must say alike."""

DATABASE = "slurm_acct_db"  # Slurm's own default
DATABASE_USER = "slurm"  # the user of the system that slurmdbd runs as: the socket lets him in by that
DATABASE_DIR = "/var/lib/corral/mariadb"  # on the state volume, so that a replaced head finds it
DATABASE_SOCKET = "/run/mysqld/mysqld.sock"  # Debian's, until /run/mariadbd took its place in sid (1:11.8.9+ds-3)
DATABASE_PID_FILE = "/run/mysqld/mysqld.pid"  # beside it: what a package names instead may have no directory
SLURMDBD_PORT = 6819  # Slurm's own default


def dump_key(cluster: str) -> str:
    """The key of the cluster's dump in its base's bucket; not below the cluster's prefix, since it outlives that."""
    return f"accounting/{cluster}.sql.gz"
