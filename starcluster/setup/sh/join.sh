# Join a prepared node: shared directories and Grid Engine's daemon. MASTER; SHARES: paths, one a line.
# ROOT_KEY: the master's key, which may log in as root.

authorize_root() {
    mkdir -p -m 700 /root/.ssh
    file=/root/.ssh/authorized_keys
    touch $file
    chmod 600 $file
    grep -qxF "$ROOT_KEY" $file || printf '%s\n' "$ROOT_KEY" >>$file
}

mount_shares() {
    while read -r path; do
        [ -n "$path" ] || continue
        mkdir -p "$path"
        mountpoint -q "$path" && continue
        timeout 60 mount -t nfs -o rw,hard,noatime "$MASTER:$path" "$path" \
            || fail "$MASTER:$path cannot be mounted"
        grep -q " $path nfs " /etc/fstab \
            || echo "$MASTER:$path $path nfs rw,hard,noatime,nofail 0 0" >>/etc/fstab
    done <<END
$SHARES
END
}

[ -z "$ROOT_KEY" ] || authorize_root
[ "$ROLE" = master ] || mount_shares
if [ "$QUEUE" = yes ]; then
    sge_environment
    chown -R sgeadmin: /var/spool/gridengine/execd "$SGE_ROOT/$SGE_CELL"
    mkdir -p /run/gridengine
    start_daemon sge_execd gridengine-exec
fi
