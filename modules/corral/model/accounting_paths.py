"""Paths and names of the accounting database, shared by the rendered files, the policies and the agent."""

DATABASE = "slurm_acct_db"  # Slurm's own default
DATABASE_USER = "slurm"  # the system user that slurmdbd runs as; MariaDB's socket authenticates it by name
DATABASE_DIR = "/var/lib/corral/mariadb"  # on the state volume, so that a replaced head finds it
DATABASE_SOCKET = "/run/mysqld/mysqld.sock"  # Debian's default before 1:11.8.9+ds-3, which uses /run/mariadbd
DATABASE_PID_FILE = "/run/mysqld/mysqld.pid"  # next to the socket: the package's own directory may not exist
SLURMDBD_PORT = 6819  # Slurm's own default


def accounting_backup_key(cluster: str) -> str:
    """Return the key of the database backup in the base's bucket, outside the cluster's prefix, which it outlives."""
    return f"accounting/{cluster}.sql.gz"
