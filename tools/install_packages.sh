#!/bin/sh
# Installs Debian packages without starting or enabling any service. Run as root: sh tools/install_packages.sh PACKAGE...
set -eu

policy=/usr/sbin/policy-rc.d
mark='managed by corral while it installs packages'
log=$(mktemp)
kept=$(mktemp -d)

# libnss-sss and libpam-sss enter themselves into files that every login of this machine reads. Only tests use them.
# PAM's must be put back by its own program: it never again changes files that differ from its records.
keep() {
    cp -a /etc/nsswitch.conf "$kept/"
}
put_back() {
    if [ -f "$kept/nsswitch.conf" ]; then
        cp -a "$kept/nsswitch.conf" /etc/nsswitch.conf
        pam-auth-update --package --remove sss </dev/null >/dev/null 2>&1 || true
    fi
}

end() {
    put_back
    rm -rf "$log" "$kept"
    if grep -qs "$mark" "$policy"; then rm -f "$policy"; fi
}
trap end EXIT
trap 'exit 130' INT TERM HUP

# The units of a package, which it would start at every boot.
units() {
    for package in "$@"; do
        case "$package" in
        munge | prometheus | prometheus-alertmanager | slurmctld | slurmd | slurmdbd) echo "$package.service" ;;
        mariadb-server) echo mariadb.service ;;
        openssh-server) echo ssh.service ssh.socket ;;
        slapd) echo slapd.service ;;
        sssd-ldap) echo sssd.service ;;
        esac
    done
}

quietly() {
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 6 "$log" | sed 's/^/    /' >&2
        return 1
    fi
}

# Debian's own switch against services that start on installation; an existing one is kept.
if [ ! -e "$policy" ] || grep -qs "$mark" "$policy"; then
    printf '#!/bin/sh\n# %s\nexit 101\n' "$mark" >"$policy"
    chmod 755 "$policy"
fi

# An installed cloud-init acts at every boot; this file is its own switch against that. Only `cloud-init schema` is
# needed. An installed cloud-init is not in the list, and keeps its setting.
for package in "$@"; do
    if [ "$package" = cloud-init ]; then
        mkdir -p /etc/cloud
        echo 'corral installed cloud-init only for its schema; remove this file to let it act at boot' >/etc/cloud/cloud-init.disabled
    fi
done

enabled=
if command -v systemctl >/dev/null; then
    for unit in $(units "$@"); do
        if systemctl --quiet is-enabled "$unit" >/dev/null 2>&1; then enabled="$enabled $unit"; fi
    done
fi

for package in "$@"; do
    case "$package" in libnss-sss | libpam-sss) keep ;; esac
done

export DEBIAN_FRONTEND=noninteractive
# An interrupted run leaves packages half configured; until they are finished, apt-get refuses everything.
if [ -n "$(dpkg --audit)" ]; then quietly dpkg --configure --pending; fi

install() {
    quietly apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}
# The first attempt usually fails because the package lists are missing or outdated.
if ! apt-get install --simulate --no-install-recommends "$@" >/dev/null 2>&1; then
    quietly apt-get update
    install "$@"
elif ! install "$@"; then
    echo '    fetching new package lists and trying again' >&2
    quietly apt-get update
    install "$@"
fi

# Disable units that were not enabled before, so that they do not start at the next boot either. A user's own sshd stays
# as it is, even if its package was half installed. Without systemd there is nothing to do.
if command -v systemctl >/dev/null; then
    for unit in $(units "$@"); do
        case " $enabled " in
        *" $unit "*) ;;
        *) systemctl --quiet disable "$unit" >/dev/null 2>&1 || true ;;
        esac
    done
fi
