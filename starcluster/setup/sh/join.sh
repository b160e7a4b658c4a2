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

# Plugins and job scripts for StarCluster 0.95 name the programs and settings by these paths.
paths_of_original() { # ROOT: /opt/sge6
    settings=$SGE_ROOT/$SGE_CELL/common/settings.sh
    [ -e "$settings" ] || [ ! -w "${settings%/*}" ] \
        || printf 'export SGE_ROOT=%s SGE_CELL=%s\n' "$SGE_ROOT" "$SGE_CELL" >"$settings"
    [ ! -e "$1" ] || return 0
    mkdir -p "$1/bin"
    for arch in linux-x64 lx24-amd64 lx-amd64 "$SGE_ARCH"; do
        ln -sfn /usr/bin "$1/bin/$arch"
    done
    ln -s /usr/share/gridengine/util "$1/util"
    ln -s "$SGE_ROOT/$SGE_CELL" "$1/default"
}

[ -z "$ROOT_KEY" ] || authorize_root
[ "$ROLE" = master ] || mount_shares
if [ "$QUEUE" = yes ]; then
    sge_environment
    running sge_execd || [ "$(admin_user)" = sgeadmin ] \
        || chown -R root: /var/spool/gridengine "$SGE_ROOT"
    mkdir -p /run/gridengine
    paths_of_original /opt/sge6
    start_daemon sge_execd gridengine-exec
fi
