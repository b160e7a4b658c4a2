# Replace the host key of the launch by one of this node. ACTION: make (and do not use it), or use.

key=/etc/ssh/ssh_host_ed25519_key # cloud-init and ebsimage remove every /etc/ssh/ssh_host_*_key*

public() { ssh-keygen -y -P '' -f "$1" </dev/null 2>/dev/null | cut -d ' ' -f 1,2; }

in_use() { [ -e $key.made ] && [ "$(cat $key.made)" = "$(public $key)" ]; }

make() {
    if in_use; then new=$key; else new=$key.new; fi
    if [ -z "$(public $new)" ]; then # missing, or incomplete after an interruption
        rm -f $new $new.pub
        ssh-keygen -q -t ed25519 -N '' -C '' -f $new
    fi
    tell host_key "$(public $new)"
}

reload() { # sshd reads its keys at its start
    if [ -d /run/systemd/system ]; then
        systemctl reload ssh 2>/dev/null || systemctl reload sshd 2>/dev/null || :
    elif [ -s /run/sshd.pid ]; then
        kill -HUP "$(cat /run/sshd.pid)"
    fi
}

use() {
    if ! in_use; then
        public $key.new >$key.made
        sync
        mv -f $key.new $key
        mv -f $key.new.pub $key.pub
        sync
    fi
    public $key >$key.pub
    reload
    tell host_key "$(public $key)"
}

"$ACTION"
