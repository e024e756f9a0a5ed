#!/bin/sh
# The first process of a machine, in its own namespaces: it creates the root directory, sets the address and becomes the
# machine's init. corral.box.vpc.machine_processes starts it, and adds the network card between "here" and "go".
#
#   machine.sh DIRECTORY HOST_NAME[.DOMAIN] ADDRESS/PREFIX ROUTER RESOLVER SYSTEM [SOURCE=TARGET...] -- INIT...
#
# DIRECTORY is the machine's disk: etc, var, opt, tmp, root, box. SYSTEM is the root directory of its system, / or
# another one, whose /usr it sees read-only. Until pivot_root the programs are the host's.
set -eu
directory=$1 host=$2 address=$3 router=$4 resolver=$5 system=${6%/}
shift 6

root=$directory/mount
mount -t tmpfs -o mode=755 root "$root"
cd "$root"
mkdir box dev etc home mnt opt proc root run srv sys tmp usr var
for name in bin sbin lib lib32 lib64 libx32; do
    if [ -L "$system/$name" ]; then ln -s "usr/$name" "$name"; fi
done
mount --rbind "$system/usr" usr
mount -o remount,bind,ro usr
mount -t tmpfs -o mode=755 local usr/local/sbin # the box's programs come before the system's
cp "$directory"/box/sbin/* usr/local/sbin/ 2>/dev/null || true
for name in box etc opt root tmp var; do mount --bind "$directory/$name" "$name"; done
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys || mount --rbind /sys sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup # slurmd needs a file system there with any plugin
mount -t tmpfs -o mode=755 dev dev
mkdir dev/pts dev/shm
for name in null zero full random urandom tty; do
    : >"dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s /proc/self/fd dev/fd
for name in stdin:0 stdout:1 stderr:2; do ln -s "/proc/self/fd/${name#*:}" "dev/${name%:*}"; done
: >dev/console # the output of init is the machine's console
mount --bind "$directory/console" dev/console
while read -r name; do ln -s null "dev/$name"; done <"$directory/box/devices" # accelerators, by name only
mount -t tmpfs -o mode=755 run run
ln -sfn /run var/run
while [ "$1" != -- ]; do
    mkdir -p "./${1#*=}"
    mount --rbind "${1%%=*}" "./${1#*=}" # with volumes that are already mounted there, as after a reboot
    shift
done
shift
domain=${host#"${host%%.*}"} # from the first dot
host=${host%%.*}
hostname "$host"
echo "$host" >etc/hostname
printf '127.0.0.1 localhost\n%s %s\n' "${address%/*}" "$host" >etc/hosts
echo "nameserver $resolver" >etc/resolv.conf
if [ "$domain" ]; then echo "search ${domain#.}" >>etc/resolv.conf; fi

echo here
read -r _ # go: eth0 exists
ip link set lo up
ip address add "$address" dev eth0
ip link set eth0 up
ip route add default via "$router"

mkdir old
pivot_root . old
cd /
umount -l old
rmdir old
echo up
exec env -i PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@" </dev/null >/dev/console 2>&1
