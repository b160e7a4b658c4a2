# Move secrets and files of this cluster off the disk while AWS creates an image, and restore them.
# ACTION: hide or restore. LIMIT_S: seconds until the node restores them even without a command.

store=/run/starcluster-image # in memory, so it is not in the snapshot

private() { # print the paths, one per line
    homes=/root
    mountpoint -q /home || homes="/root /home/*"
    # shellcheck disable=SC2086
    find $homes -xdev -maxdepth 1 \( -name '.*_history' -o -name .lesshst -o -name .viminfo \
        -o -name .netrc -o -name .ssh -o -name .aws -o -name .starcluster \) 2>/dev/null || :
    find /etc/ssh -name 'ssh_host_*_key*' 2>/dev/null || :
    [ ! -d /var/lib/cloud/instances ] || echo /var/lib/cloud/instances # contains the user data
    for path in /var/lib/cloud/instance /etc/fstab /etc/hosts /etc/ssh/ssh_known_hosts; do
        [ ! -e $path ] || echo $path
    done
}

restore() {
    [ -d $store ] || return 0
    cp -a $store/disk/. /
    rm -rf $store
}

hide() {
    [ ! -e /var/spool/gridengine/.starcluster-made ] || fail "this is the master of a cluster:" \
        "use a node, or an instance launched by 'starcluster start -o'"
    restore # after an earlier run that was interrupted
    mkdir -m 700 $store
    mkdir -m "$(stat -c %a /)" $store/disk # restore copies the mode of this directory to /
    private >$store/paths
    (cd / && sed 's|^/||' $store/paths | xargs -d '\n' cp -a --parents -t $store/disk --)
    # Restore after LIMIT_S in any case: a lost connection must not lock everybody out.
    token=$$-$(date +%s)
    echo "$token" >$store/token
    setsid sh -c "sleep $LIMIT_S; [ \"\$(cat $store/token 2>/dev/null)\" = $token ] || exit
        cp -a $store/disk/. / && rm -rf $store" </dev/null >/dev/null 2>&1 &
    grep -v -e '^/etc/fstab$' -e '^/etc/hosts$' $store/paths | while read -r path; do
        find "$path" -xdev -type f -exec shred -n 1 -u {} + # a snapshot includes free blocks
        rm -rf "$path"
    done
    sed -i -e '/ nfs rw,hard,noatime,nofail 0 0$/d' -e '/,x-starcluster 0 0$/d' /etc/fstab 2>/dev/null || :
    sed -i '/^# starcluster: nodes$/,/^# starcluster: end$/d' /etc/hosts
    sync
}

"$ACTION"
