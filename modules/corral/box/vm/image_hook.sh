#!/bin/sh
# What Debian's cloud images have besides their packages, and what QEMU's hardware needs instead of EC2's.
# mmdebstrap runs it with the root directory of the new system: sh image_hook.sh ROOT USER
# Source: debian-cloud-images, config_space (package lists, 90_dpkg.cfg, fstab).
set -eu
root=$1 user=$2

rm -f "$root/etc/hostname" "$root"/etc/ssh/ssh_host_*
: >"$root/etc/machine-id"
ln -sf ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
cat >"$root/etc/hosts" <<'HOSTS'
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
HOSTS
echo "LABEL=cloudroot / ext4 rw,discard,errors=remount-ro,x-systemd.growfs 0 1" >"$root/etc/fstab"
cat >"$root/etc/cloud/cloud.cfg.d/90_box.cfg" <<CLOUD
datasource_list: [ Ec2, None ]
manage_etc_hosts: true
system_info:
  default_user:
    name: $user
    sudo: ["ALL=(ALL) NOPASSWD:ALL"]
    shell: /bin/bash
    lock_passwd: True
CLOUD
cat >"$root/etc/apt/sources.list" <<'SOURCES'
deb http://deb.debian.org/debian trixie main
deb http://deb.debian.org/debian trixie-updates main
deb http://deb.debian.org/debian-security trixie-security main
SOURCES
rm -f "$root"/etc/apt/sources.list.d/0000*
# QEMU's NVMe controller has one model name; the serial number says what it is on EC2.
cat >"$root/etc/udev/rules.d/61-ec2-nvme.rules" <<'RULES'
KERNEL=="nvme*[0-9]n*[0-9]", ENV{DEVTYPE}=="disk", ATTRS{serial}=="vol*", SYMLINK+="disk/by-id/nvme-Amazon_Elastic_Block_Store_$attr{serial}"
KERNEL=="nvme*[0-9]n*[0-9]", ENV{DEVTYPE}=="disk", ATTRS{serial}=="AWS*", SYMLINK+="disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_$attr{serial}"
RULES
# Modules of hardware that QEMU's processors announce and do not have.
printf 'blacklist %s\n' kvm_amd kvm powernow_k8 vmw_vsock_vmci_transport >"$root/etc/modprobe.d/box.conf"
chroot "$root" systemctl enable systemd-networkd systemd-resolved systemd-timesyncd ssh >/dev/null 2>&1
chroot "$root" python3 -m compileall -q /usr/lib/python3 >/dev/null 2>&1 || true
chroot "$root" dpkg-query --show >"$root/etc/box-packages"
touch "$root/etc/.updated" "$root/var/.updated"
# The box runs the commands of Systems Manager itself. Without this program a head would install AWS's package.
cat >"$root/usr/bin/amazon-ssm-agent" <<'AGENT'
#!/bin/sh
echo "the box runs the commands of Systems Manager by ssh; this machine has no agent" >&2
exit 1
AGENT
chmod 755 "$root/usr/bin/amazon-ssm-agent"
