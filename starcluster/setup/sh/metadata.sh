# Let only root reach the metadata service of EC2, now and after each boot, or everybody.
# METADATA: root or all.

guard=/usr/local/sbin/starcluster-metadata
unit=starcluster-metadata.service
units=/etc/systemd/system

write_guard() {
    mkdir -p "${guard%/*}"
    # Rules of routing need no package and no kernel module, and firewalls do not flush them.
    # systemd-networkd keeps rules of "protocol kernel".
    cat >$guard.new <<'END'
#!/bin/sh
# Let only root reach the metadata service of EC2: it tells the user data, and the credentials of the
# instance's role. "all" removes the rules.
set -eu
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin

has() { ip "$1" rule show pref "$2" 2>/dev/null | grep -q "to $3 "; } # FAMILY PREFERENCE ADDRESS

for each in "-4 169.254.169.254" "-6 fd00:ec2::254"; do
    family=${each% *} address=${each#* }
    [ "$family" = -4 ] || [ -e /proc/sys/net/ipv6 ] || continue
    if [ "${1:-root}" = all ]; then
        for preference in 10 11; do
            ! has "$family" $preference $address || ip "$family" rule del pref $preference to $address
        done
        continue
    fi
    has "$family" 11 $address || ip "$family" rule add pref 11 to $address protocol kernel prohibit
    has "$family" 10 $address \
        || ip "$family" rule add pref 10 to $address iif lo uidrange 0-0 protocol kernel lookup main
done
END
    chmod 755 $guard.new
    mv -f $guard.new $guard
}

at_boot() { # before any network, and no job can start without it
    mkdir -p $units/multi-user.target.wants $units/gridengine-exec.service.d
    cat >$units/$unit <<END
[Unit]
Description=Only root can reach the metadata service of EC2
DefaultDependencies=no
After=local-fs.target
Before=network-pre.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=$guard

[Install]
WantedBy=multi-user.target
END
    ln -sfn $units/$unit $units/multi-user.target.wants/$unit
    printf '[Unit]\nRequires=%s\nAfter=%s\n' $unit $unit >$units/gridengine-exec.service.d/starcluster.conf
}

only_root() {
    write_guard
    at_boot
    $guard
    [ ! -d /run/systemd/system ] || { systemctl daemon-reload && systemctl start $unit; }
    setpriv --reuid=65534 --regid=65534 --clear-groups python3 -I -S - <<'END' || fail \
        "an ordinary user can reach the metadata service; to allow this, set metadata_access = all"
import errno, socket, sys

NONE = errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.ENETUNREACH  # without IPv6
for family, address in (socket.AF_INET, "169.254.169.254"), (socket.AF_INET6, "fd00:ec2::254"):
    try:
        with socket.socket(family) as connection:
            connection.settimeout(5)
            error = connection.connect_ex((address, 80))
    except OSError as failure:
        error = failure.errno
    if error != errno.EACCES and not (family == socket.AF_INET6 and error in NONE):
        sys.exit(f"{address}: {errno.errorcode.get(error, 'connected')}, not EACCES")
END
}

everybody() {
    [ -e $guard ] || return 0
    rm -f $units/multi-user.target.wants/$unit $units/$unit $units/gridengine-exec.service.d/starcluster.conf
    [ ! -d /run/systemd/system ] || systemctl daemon-reload
    $guard all
    rm -f $guard
}

if [ "$METADATA" = root ]; then only_root; else everybody; fi
