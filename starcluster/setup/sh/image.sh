# Take what is private, or of this cluster only, off the disk while an image is made of it, and
# bring it back. ACTION: hide or restore. LIMIT_S: when it comes back by itself, whatever happened.

store=/run/starcluster-image # in memory: no snapshot has it

private() { # one path a line
    homes=/root
    mountpoint -q /home || homes="/root /home/*"
    # shellcheck disable=SC2086
    find $homes -xdev -maxdepth 1 \( -name '.*_history' -o -name .lesshst -o -name .viminfo \
        -o -name .netrc -o -name .ssh -o -name .aws -o -name .starcluster \) 2>/dev/null || :
    find /etc/ssh -name 'ssh_host_*_key*' 2>/dev/null || :
    [ ! -d /var/lib/cloud/instances ] || echo /var/lib/cloud/instances # has the user data
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
        "take a node, or an instance that 'starcluster start -o' has launched"
    restore # of a try that was cut off
    mkdir -m 700 $store
    mkdir -m "$(stat -c %a /)" $store/disk # what is copied back is a whole / by its rights
    private >$store/paths
    (cd / && sed 's|^/||' $store/paths | xargs -d '\n' cp -a --parents -t $store/disk --)
    # It comes back by itself: a broken connection must not leave a machine that nobody can enter.
    token=$$-$(date +%s)
    echo "$token" >$store/token
    setsid sh -c "sleep $LIMIT_S; [ \"\$(cat $store/token 2>/dev/null)\" = $token ] || exit
        cp -a $store/disk/. / && rm -rf $store" </dev/null >/dev/null 2>&1 &
    grep -v -e '^/etc/fstab$' -e '^/etc/hosts$' $store/paths | while read -r path; do
        find "$path" -xdev -type f -exec shred -n 1 -u {} + # free blocks are in a snapshot too
        rm -rf "$path"
    done
    sed -i '/ nfs rw,hard,noatime,nofail 0 0$/d' /etc/fstab 2>/dev/null || :
    sed -i '/^# starcluster: nodes$/,/^# starcluster: end$/d' /etc/hosts
    sync
}

"$ACTION"
