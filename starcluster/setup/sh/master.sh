# Set up the master: volumes, the user's home, the NFS server and Grid Engine's master.
# VOLUMES: lines "ID DEVICE PARTITION PATH", "-" for no partition. EXPORTS: lines of /etc/exports.
# CONFIGURATION: lines "NAME VALUE" for a new cell. USER_KEYS: public keys that can log in.

device_of() { # ID DEVICE PARTITION
    by_id=/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_$(printf '%s' "$1" | tr -d -)
    if [ -e "$by_id" ]; then
        device=$by_id${3:+-part$3}
    else
        device=$2
        [ -e "$device" ] || device=/dev/xvd${2#/dev/sd}
        device=$device$3
    fi
    [ -b "$device" ] || fail "volume $1: no block device $device"
}

first_partition() { # set $device to its first partition, if it has one
    for first in "$device-part1" "${device}1"; do
        [ ! -b "$first" ] || device=$first
    done
}

make_file_system() { # only on a new volume: blkid finds nothing, and it starts with zeros
    found=0
    blkid -p "$device" >/dev/null 2>&1 || found=$?
    [ $found -eq 2 ] && cmp -s -n 1048576 "$device" /dev/zero || return 0
    mkfs.ext4 -q "$device" || fail "cannot create a file system on $device"
    tell filesystem "$device"
}

mount_at_boot() { # PATH: mount $device there after every reboot
    awk -v path="$1" '$2 != path || /^#/' "$fstab" >"$fstab.starcluster-new"
    echo "$device $1 auto defaults,nofail,x-systemd.device-timeout=60 0 2" >>"$fstab.starcluster-new"
    cat "$fstab.starcluster-new" >"$fstab"
    rm -f "$fstab.starcluster-new"
}

mount_volumes() {
    fstab=${FSTAB:-/etc/fstab}
    touch "$fstab"
    while read -r id device partition path; do
        [ -n "$id" ] || continue
        mkdir -p "$path"
        ! mountpoint -q "$path" || continue
        [ "$partition" != - ] || partition=
        device_of "$id" "$device" "$partition"
        [ -n "$partition" ] || first_partition
        make_file_system
        mount "$device" "$path" || fail "cannot mount volume $id ($device) on $path"
        mount_at_boot "$path"
    done <<END
$VOLUMES
END
}

make_home() {
    if [ ! -d "$home" ]; then
        mkdir -p "${home%/*}"
        cp -r /etc/skel "$home"
        chown -R "$CLUSTER_USER:" "$home"
    fi
    keys=$home/.ssh
    [ -d "$keys" ] || install -d -m 700 -o "$number" -g "$number" "$keys"
    [ -f "$keys/id_ed25519" ] \
        || ssh-keygen -q -t ed25519 -N '' -C "$CLUSTER_USER@$MASTER" -f "$keys/id_ed25519"
    touch "$keys/authorized_keys"
    chmod 600 "$keys/authorized_keys"
    { cat "$keys/id_ed25519.pub"; printf '%s\n' "$USER_KEYS"; } | while read -r line; do
        [ -z "$line" ] || grep -qxF "$line" "$keys/authorized_keys" \
            || printf '%s\n' "$line" >>"$keys/authorized_keys"
    done
    chown -R "$CLUSTER_USER:" "$keys"
    [ -f /root/.ssh/id_ed25519 ] || {
        mkdir -p -m 700 /root/.ssh
        ssh-keygen -q -t ed25519 -N '' -C "root@$MASTER" -f /root/.ssh/id_ed25519
    }
    tell root_key "$(cat /root/.ssh/id_ed25519.pub)"
}

share() {
    mkdir -p /etc/exports.d
    printf '%s\n' "$EXPORTS" >/etc/exports.d/starcluster.exports
    if [ -d /run/systemd/system ]; then
        systemctl start nfs-kernel-server 2>/dev/null || systemctl start nfs-server
    else
        /etc/init.d/nfs-kernel-server start >/dev/null 2>&1
    fi
    exportfs -ra || fail "exportfs -ra failed for /etc/exports.d/starcluster.exports"
}

# Does what the installer of the packages does, without questions.
make_cell() {
    spool=/var/spool/gridengine
    if [ ! -e $spool/.starcluster-made ]; then
        rm -rf $spool/spooldb
        mkdir -p $spool/qmaster/job_scripts $spool/spooldb
        chown -R root: $spool "$SGE_ROOT"
        work=$(mktemp -d)
        sed -e :a -e '/\\$/N; s/\\\n//; ta' -e '/^DB_SPOOLING_SERVER/d' \
            /usr/share/gridengine/default-configuration >"$work/given"
        printf '%s\n' "$CONFIGURATION" | awk '
            NR == FNR { if (NF) { name = $1; $1 = ""; ours[name] = $0 } next }
            $1 in ours { print $1 ours[$1]; next }
            { print }' - "$work/given" >"$work/configuration"
        chmod -R a+rX "$work"
        cd /tmp
        spoolinit berkeleydb libspoolb $spool/spooldb init >/dev/null
        spooldefaults configuration "$work/configuration" >/dev/null
        spooldefaults complexes /usr/share/gridengine/util/resources/centry >/dev/null
        spooldefaults usersets /usr/share/gridengine/util/resources/usersets >/dev/null
        spooldefaults managers root >/dev/null
        rm -r "$work"
        touch $spool/.starcluster-made
    fi
    start_daemon sge_qmaster gridengine-master
    until_true 30 qconf -sm || fail "sge_qmaster does not answer after 30 s; its last messages:" \
        "$(tail -n 3 $spool/qmaster/messages 2>/dev/null)"
}

mount_volumes
make_home
share
if [ "$QUEUE" = yes ]; then
    sge_environment
    make_cell
fi
