# Install the packages of a node, and configure the master for Grid Engine. Runs as root; a rerun
# changes nothing. QUEUE: yes for Grid Engine. ROLE: master or node. MASTER: host name of the master.
# STORAGE: tls for the tunnel to EFS.

missing=
need() { # PROGRAM PACKAGE
    command -v "$1" >/dev/null || missing="$missing $2"
}

install_packages() {
    command -v apt-get >/dev/null || fail "cannot install$missing: no apt-get on this node;" \
        "use an image of Debian or Ubuntu, or one with these packages"
    for part in common client exec master; do
        echo "gridengine-$part shared/gridengineconfig boolean false"
    done | debconf-set-selections
    # shellcheck disable=SC2086
    apt_install $missing
}

point_to_master() {
    common=$SGE_ROOT/$SGE_CELL/common
    mkdir -p "$common" /var/spool/gridengine/execd
    printf '%s\n' "$MASTER" >"$common/act_qmaster"
    admin=$(admin_user)
    cat >"$common/bootstrap" <<END
admin_user ${admin:-none}
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
    # The packages give this directory, in which root writes, to sgeadmin.
    sed -i 's/chown sgeadmin:sgeadmin/chown root:root/' /etc/init.d/gridengine-* 2>/dev/null || :
    if [ -w /etc/default/gridengine ]; then
        sed -i -e 's/^SGE_START_EXECD=.*/SGE_START_EXECD=yes/' /etc/default/gridengine
        [ "$ROLE" != master ] \
            || sed -i -e 's/^SGE_START_MASTERD=.*/SGE_START_MASTERD=yes/' /etc/default/gridengine
    fi
}

probe() { # report a crash of Grid Engine, and the packages of this node to replace
    crash=$(spooldefaults_crash)
    [ -n "$crash" ] || return 0
    tell crash "$crash"
    tell architecture "$(dpkg --print-architecture)"
    for part in common client exec master; do
        words=$(dpkg-query -W -f '${db:Status-Status}' "gridengine-$part" 2>/dev/null) || continue
        [ "$words" = not-installed ] || [ "$words" = config-files ] || tell package "gridengine-$part"
    done
    words=$(dpkg-query -W -f '${Version}' libhwloc15 2>/dev/null) || words=
    dpkg --compare-versions "$words" ge 2.7.1 || tell package libhwloc15 # Ubuntu 22.04
}

# Wait for scripts in the user data: they run last at boot, can use apt-get, and prepare for jobs.
! command -v cloud-init >/dev/null || timeout 600 cloud-init status --wait >/dev/null 2>&1 || :
need mount.nfs nfs-common
need python3 python3
need ip iproute2
case " $STORAGE " in *" tls "*) # amazon-efs-utils of an image replaces the tunnel
    command -v mount.efs >/dev/null || need stunnel4 stunnel4
    [ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates" ;;
esac
[ "$ROLE" != master ] || need exportfs nfs-kernel-server
if [ "$QUEUE" = yes ]; then
    command -v sendmail >/dev/null || missing="$missing nullmailer"
    [ -e /etc/services ] || missing="$missing netbase" # the ports of Grid Engine
    need sge_execd gridengine-exec
    [ -x /usr/lib/gridengine/qconf ] || missing="$missing gridengine-client"
    [ "$ROLE" != master ] || need sge_qmaster gridengine-master
fi
case $missing in "" | " nullmailer") ;; *) install_packages ;; esac
if [ "$QUEUE" = yes ]; then
    sge_environment
    point_to_master
    if [ "$ROLE" = master ]; then daemon=sge_qmaster; else daemon=sge_execd; fi
    running "$daemon" || probe
fi
tell processors "$(nproc)"
tell gpus "$(python3 -c '
import sys
sys.path.insert(0, sys.argv[1])
from sge_jobs.node.gpus.detect import detect
print(len(detect().gpus))' "$TOOLS" 2>/dev/null || echo 0)"
