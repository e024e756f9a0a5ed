#!/bin/sh
# The root directory of a machine, in a mount namespace: the disk, the system, devices. It runs as the VPC's user, who
# may read the disk, and then starts machine.sh there as the machine's root. corral.box.vpc.namespace_machines starts it.
#
#   machine_root.sh DIRECTORY SYSTEM UID [SOURCE=TARGET...] -- COMMAND...
#
# DIRECTORY is the machine's disk: etc, var, opt, tmp, root, box. SYSTEM is the root directory of its system, / or
# another one, whose /usr it sees read-only. UID is that of the machine's root.
set -eu
directory=$1 system=${2%/} uid=$3
shift 3

root=$directory/mount
mount -t tmpfs -o "mode=755,uid=$uid,gid=$uid" root "$root"
cd "$root"
mkdir box dev etc home mnt opt proc root run srv sys tmp usr var old
for name in bin sbin lib lib32 lib64 libx32; do
    if [ -L "$system/$name" ]; then ln -s "usr/$name" "$name"; fi
done
chown -h "$uid:$uid" ./*
mount --rbind "$system/usr" usr
mount -o remount,bind,ro usr
mount -t tmpfs -o mode=755 local usr/local/sbin # the box's programs come before the system's
mount -t tmpfs -o "mode=755,uid=$uid,gid=$uid" local usr/local/bin # as an image has it: empty, and its own
cp "$directory"/box/sbin/* usr/local/sbin/ 2>/dev/null || true
for name in box etc opt root tmp var; do mount --bind "$directory/$name" "$name"; done
mount -t tmpfs -o "mode=755,uid=$uid,gid=$uid" dev dev
mkdir dev/pts dev/shm
for name in null zero full random urandom tty; do
    : >"dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s /proc/self/fd dev/fd
for name in stdin:0 stdout:1 stderr:2; do ln -s "/proc/self/fd/${name#*:}" "dev/${name%:*}"; done
: >dev/console # the output of init is the machine's console
mount --bind "$directory/console" dev/console
while read -r name; do ln -s null "dev/$name"; done <"$directory/box/devices" # accelerators, by name only
mount -t tmpfs -o "mode=755,uid=$uid,gid=$uid" run run
ln -sfn /run var/run
while [ "$1" != -- ]; do
    mkdir -p "./${1#*=}"
    mount --rbind "${1%%=*}" "./${1#*=}" # with volumes that are already mounted there, as after a reboot
    shift
done
shift
exec "$@"
