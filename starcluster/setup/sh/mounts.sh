# Mount file systems of EFS, FSx for Lustre and S3 on this node, now and after every reboot.
# MOUNTS: lines "KIND ID PATH SOURCE TLS OPTIONS NAME". For S3 also CLUSTER_USER.

probe() { # HOST PORT TLS: print why the server cannot be used; nothing if it answers
    python3 - "$1" "$2" "$3" <<'END'
import socket, ssl, sys
host, port, tls = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "yes"
try:
    with socket.create_connection((host, port), 10) as plain:
        if tls:
            ssl.create_default_context().wrap_socket(plain, server_hostname=host).close()
except socket.gaierror:
    print(f"the name {host} is unknown in the zone of this node: it needs a mount target in this"
          " zone, and a VPC whose DNS hostnames and DNS resolution are on")
except TimeoutError:
    print(f"no answer from {host} port {port} after 10 s: open this port in the security group of"
          " the file system for the nodes")
except ssl.SSLError as error:
    print(f"TLS with {host} failed: {error}")
except OSError as error:
    print(f"{host} port {port}: {error.strerror or error}")
END
}

require_answer() { # HOST PORT TLS
    why=$(probe "$1" "$2" "$3")
    [ -z "$why" ] || fail "volume $name ($id): $why"
}

is_mounted() { awk -v path="$path" '$2 == path { f = 1 } END { exit !f }' /proc/self/mounts; }

in_fstab() { awk -v path="$path" '$2 == path && !/^#/' "$fstab"; }

write_fstab() { # LINE of $path, empty for none
    awk -v path="$path" '$2 != path || /^#/' "$fstab" >"$fstab.starcluster-new"
    [ -z "$1" ] || printf '%s\n' "$1" >>"$fstab.starcluster-new"
    cat "$fstab.starcluster-new" >"$fstab"
    rm -f "$fstab.starcluster-new"
}

mount_now() { # print why it failed
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        unit=$(systemd-escape --path --suffix=mount "$path")
        timeout 120 systemctl start "$unit" >/dev/null 2>&1 && return
        journalctl -q -o cat -n 3 -u "$unit" --grep '^mount|denied|failed|error' 2>/dev/null | tr '\n' ' '
        return 1
    fi
    timeout -k 5 "${MOUNT_S:-90}" mount "$path" 2>&1 </dev/null
}

attach() { # TYPE SOURCE OPTIONS
    line="$2 $path $1 $3,_netdev,nofail,x-systemd.mount-timeout=90,x-starcluster 0 0"
    mkdir -p "$path"
    if is_mounted; then
        there=$(in_fstab)
        if [ "$there" = "$line" ]; then
            timeout -k 5 20 stat -f "$path" >/dev/null 2>&1 \
                || fail "volume $name ($id): $path does not answer; is its server gone?"
            return 0
        fi
        case $there in
            *,x-starcluster\ *) timeout -k 5 60 umount "$path" || fail "volume $name: $path is in use" ;;
            *) fail "volume $name ($id): another file system is mounted on $path" ;;
        esac
    fi
    write_fstab "$line"
    why=$(mount_now) && is_mounted && return
    write_fstab ""
    fail "volume $name ($id): cannot mount it on $path: ${why:-no answer from its server in time}"
}

# Only root can listen on these ports, so no user can serve files to root while a tunnel is down.
free_port() {
    for port in 334 335 336 337 338 339 340 341 342 343; do
        grep -qsx "accept = 127.0.0.1:$port" $tunnels/*.conf || break
        port=
    done
    [ -n "$port" ] || fail "volume $name ($id): at most 10 EFS file systems with TLS;" \
        "set tls = false in its section"
}

tunnel() { # set $port to the local port of a TLS tunnel to $source
    tunnels=/etc/starcluster/efs
    conf=$tunnels/$id.conf
    mkdir -p $tunnels
    port=$(sed -n 's/^accept = 127.0.0.1://p' "$conf" 2>/dev/null) || port=
    [ -n "$port" ] || free_port
    cat >"$conf.new" <<END
foreground = yes
pid =
syslog = no
[efs]
client = yes
accept = 127.0.0.1:$port
connect = $source:2049
CAfile = /etc/ssl/certs/ca-certificates.crt
verifyChain = yes
checkHost = $source
sslVersionMin = TLSv1.2
delay = yes
TIMEOUTbusy = 20
TIMEOUTclose = 0
TIMEOUTidle = 70
END
    if cmp -s "$conf.new" "$conf"; then rm "$conf.new"; else mv "$conf.new" "$conf"; fi
    if [ -d /run/systemd/system ]; then
        cat >/etc/systemd/system/starcluster-efs@.service <<'END'
[Unit]
Description=TLS tunnel to the EFS file system %i
Wants=network-online.target
After=network-online.target
[Service]
ExecStart=/usr/bin/stunnel4 /etc/starcluster/efs/%i.conf
Restart=always
RestartSec=1
User=stunnel4
NoNewPrivileges=yes
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
END
        systemctl daemon-reload
        systemctl start "starcluster-efs@$id" || fail "cannot start the tunnel to $source"
    elif ! pgrep -f "^stunnel4 $conf" >/dev/null; then
        setsid setpriv --reuid=stunnel4 --regid=stunnel4 --clear-groups \
            --inh-caps=+net_bind_service --ambient-caps=+net_bind_service \
            stunnel4 "$conf" </dev/null >/dev/null 2>&1 &
    fi
    until_true 10 python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" \
        || fail "volume $name ($id): the TLS tunnel does not listen on port $port"
}

mount_efs() {
    by_nfs=nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport
    if [ "$tls" = yes ] && command -v mount.efs >/dev/null; then
        attach efs "$id:/" "tls,noresvport,$options"
        return
    fi
    case ",$options," in *,accesspoint=* | *,iam,*)
        fail "volume $name ($id): access points and IAM require amazon-efs-utils, which this image" \
            "does not have; install it in an image, and set node_image_id" ;;
    esac
    require_answer "$source" 2049 "$tls"
    if [ "$tls" = yes ]; then
        tunnel
        unit=x-systemd.requires=starcluster-efs@$id.service
        attach nfs4 127.0.0.1:/ "$by_nfs,port=$port,$unit,$options"
    else
        attach nfs4 "$source:/" "$by_nfs,$options"
    fi
}

install_lustre() {
    . /etc/os-release
    [ "$ID" = ubuntu ] || fail "volume $name ($id): AWS has no Lustre client for $PRETTY_NAME;" \
        "use an image of Ubuntu, or one that has the client"
    key=/etc/apt/keyrings/starcluster-fsx.asc
    mkdir -p /etc/apt/keyrings
    python3 - https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc \
        $key <<'END' || fail "volume $name ($id): cannot fetch the key of AWS's Lustre packages"
import sys, urllib.request
data = urllib.request.urlopen(sys.argv[1], timeout=30).read(1 << 20)
open(sys.argv[2], "wb").write(data)
END
    echo "deb [signed-by=$key] https://fsx-lustre-client-repo.s3.amazonaws.com/ubuntu $VERSION_CODENAME main" \
        >/etc/apt/sources.list.d/starcluster-fsx.list
    (apt_install "lustre-client-modules-$(uname -r)") \
        || fail "volume $name ($id): no Lustre client for kernel $(uname -r);" \
            "use an image whose kernel AWS supports, e.g. a newer one"
}

mount_fsx() {
    command -v mount.lustre >/dev/null && modprobe -q lustre || install_lustre
    modprobe lustre || fail "volume $name ($id): cannot load the Lustre module of kernel $(uname -r)"
    require_answer "${source%%@*}" 988 no
    net=x-systemd.requires=network-online.target,x-systemd.after=network-online.target
    attach lustre "$source" "relatime,flock,$net,$options"
}

mount_s3() { # for the cluster's user; all users can read
    command -v mount.mount-s3 >/dev/null || fail "volume $name ($id): the mount-s3 of this image is" \
        "too old for /etc/fstab; it needs version 1.19 or newer"
    owner=uid=$(id -u "$CLUSTER_USER"),gid=$(id -g "$CLUSTER_USER")
    attach mount-s3 "$source" "nosuid,nodev,allow-other,$owner,$options"
}

mount_all() {
    fstab=${FSTAB:-/etc/fstab}
    touch "$fstab"
    while read -r kind id path source tls options name <&3; do
        [ -z "$kind" ] || "mount_$kind"
    done 3<<END
$MOUNTS
END
}

mount_all
