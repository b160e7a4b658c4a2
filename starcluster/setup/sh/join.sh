# Join a prepared node: mount shared directories, start Grid Engine's daemon. MASTER: host name.
# SHARES: paths, one per line. ROOT_KEY: public key of root on the master, which can log in as root.

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
            || fail "cannot mount $MASTER:$path"
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
