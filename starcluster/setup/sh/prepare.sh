# Install the packages of a node, and configure the master for Grid Engine. Runs as root; a rerun
# changes nothing. QUEUE: yes for Grid Engine. ROLE: master or node. MASTER: host name of the master.

missing=
need() { # PROGRAM PACKAGE
    command -v "$1" >/dev/null || missing="$missing $2"
}

install_packages() {
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a LC_ALL=C
    command -v apt-get >/dev/null || fail "cannot install$missing: no apt-get on this node;" \
        "use an image of Debian or Ubuntu, or one with these packages"
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then # the daemons must not start before they are configured
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod 755 $policy
    fi
    for part in common client exec master; do
        echo "gridengine-$part shared/gridengineconfig boolean false"
    done | debconf-set-selections
    apt="apt-get -q -y -o DPkg::Lock::Timeout=300"
    log=$(mktemp)
    end=0
    retry_transient install_missing || end=$?
    words=$(tail -n 5 "$log")
    rm -f "$log"
    [ $end -eq 0 ] || fail "apt-get: $words"
}

install_missing() {
    # shellcheck disable=SC2086
    $apt install --no-install-recommends $missing \
        || { $apt update; $apt install --no-install-recommends $missing; }
}

retry_transient() { # COMMAND...: retry while $log has a temporary error
    # At the first boot other programs update the package lists; apt-get does not wait for that lock.
    passes='Could not get lock|Failed to fetch|Temporary failure|Could not resolve'
    tries=12
    until "$@" >"$log" 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] && grep -qE "$passes" "$log" || return 1
        sleep "${PAUSE_S:-15}"
    done
}

point_to_master() {
    common=$SGE_ROOT/$SGE_CELL/common
    mkdir -p "$common" /var/spool/gridengine/execd
    printf '%s\n' "$MASTER" >"$common/act_qmaster"
    cat >"$common/bootstrap" <<'END'
admin_user sgeadmin
default_domain none
ignore_fqdn true
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params /var/spool/gridengine/spooldb
binary_path /usr/sbin
qmaster_spool_dir /var/spool/gridengine/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
END
    cat >/etc/profile.d/starcluster-sge.sh <<END
export SGE_ROOT=$SGE_ROOT SGE_CELL=$SGE_CELL SGE_ARCH=$SGE_ARCH
case :\$PATH: in *:/usr/lib/gridengine:*) ;; *) PATH=/usr/lib/gridengine:\$PATH ;; esac
END
    if [ -w /etc/default/gridengine ]; then
        sed -i -e 's/^SGE_START_EXECD=.*/SGE_START_EXECD=yes/' /etc/default/gridengine
        [ "$ROLE" != master ] \
            || sed -i -e 's/^SGE_START_MASTERD=.*/SGE_START_MASTERD=yes/' /etc/default/gridengine
    fi
}

# Wait for scripts in the user data: they run last at boot, can use apt-get, and prepare for jobs.
! command -v cloud-init >/dev/null || timeout 600 cloud-init status --wait >/dev/null 2>&1 || :
need mount.nfs nfs-common
need python3 python3
[ "$ROLE" != master ] || need exportfs nfs-kernel-server
if [ "$QUEUE" = yes ]; then
    command -v sendmail >/dev/null || missing="$missing nullmailer"
    need sge_execd gridengine-exec
    [ -x /usr/lib/gridengine/qconf ] || missing="$missing gridengine-client"
    [ "$ROLE" != master ] || need sge_qmaster gridengine-master
fi
case $missing in "" | " nullmailer") ;; *) install_packages ;; esac
if [ "$QUEUE" = yes ]; then
    sge_environment
    point_to_master
fi
tell processors "$(nproc)"
tell gpus "$(python3 -c '
import sys
sys.path.insert(0, sys.argv[1])
from sge_jobs.node.gpus.detect import detect
print(len(detect().gpus))' "$TOOLS" 2>/dev/null || echo 0)"
