#!/bin/sh
# The head of a cluster, in namespaces of its own. controller.py starts it and explains the arguments. Prints "ready"
# when slurmctld answers, restarts it for every line that it reads, and exits when its standard input ends; everything in
# the namespaces then dies with it.
set -eu
root=$1 host=$2 address=$3 user=$4

ip link set lo up
ip address add "$address/32" dev lo
hostname "$host"

# /mnt is a short path, and the daemons' users can reach it.
mount --bind "$root" /mnt
mount -t tmpfs tmpfs /run
mkdir -p /run/munge
for path in etc/slurm etc/hosts etc/nsswitch.conf var opt; do
    mount --bind "/mnt/$path" "/$path"
done

set --
if [ -n "$user" ]; then
    # As root, slurmctld drops its groups, which a single-user namespace does not allow: it runs as that user, in a nested
    # namespace.
    mount --bind /mnt/etc/passwd /etc/passwd
    set -- unshare --user --map-user="$user" --map-group="$user" --
fi

# In a single-user namespace, the root directory belongs to nobody, which munged considers insecure.
"$@" munged ${user:+--force} --key-file=/mnt/munge.key --num-threads=2
if [ -e /etc/slurm/slurmdbd.conf ]; then
    mkdir -m 777 /run/mysqld /run/slurmdbd
    export MYSQL_UNIX_PORT=/run/mysqld/mysqld.sock # the default of newer MariaDBs is in /run/mariadbd; the agent sets it, too
    # Slurm wants snapshot isolation off; older MariaDBs do not know it.
    options="--no-defaults --user=mysql --datadir=/mnt/database --loose-innodb-snapshot-isolation=OFF"
    # shellcheck disable=SC2086 # several options
    mariadb-install-db $options --skip-test-db --auth-root-authentication-method=socket >/mnt/mariadb.out
    # shellcheck disable=SC2086
    mariadbd $options --socket=/run/mysqld/mysqld.sock --skip-networking >>/mnt/mariadb.out 2>&1 &
    until mariadb --no-defaults --socket=/run/mysqld/mysqld.sock --execute="CREATE DATABASE slurm_acct_db;
        CREATE USER slurm@localhost IDENTIFIED VIA unix_socket; GRANT ALL ON slurm_acct_db.* TO slurm@localhost" \
        2>/dev/null; do sleep 0.05; done
    chown "$(sed -n s/^SlurmUser=//p /etc/slurm/slurmdbd.conf)" /etc/slurm/slurmdbd.conf
    slurmdbd -D >/mnt/slurmdbd.out 2>&1 &
    slurmdbd=$!
    until sacctmgr --immediate add cluster "$(sed -n s/^ClusterName=//p /etc/slurm/slurm.conf)" >/dev/null 2>&1; do
        kill -0 "$slurmdbd" || exit 1
        sleep 0.05
    done
fi
while
    "$@" slurmctld -D >>/mnt/slurmctld.out 2>&1 &
    slurmctld=$!
    until "$@" scontrol ping 2>/dev/null | grep -q UP; do
        kill -0 "$slurmctld" || exit 1
        sleep 0.05
    done
    echo ready
    read -r _
do
    kill "$slurmctld" && wait "$slurmctld"
done
kill "$slurmctld" && wait "$slurmctld"
