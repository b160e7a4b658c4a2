# Register nodes with Grid Engine, with their queue instances disabled. Runs on the master.
# HOSTS: lines "NAME PROCESSORS GPUS"; the first is the master.

sge_environment
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

change() { qconf "$@" >"$work/answer" 2>&1 || fail "qconf $*: $(cat "$work/answer")"; }

is_in() { printf '%s\n' "$2" | tr -s ' ,\\' '\n\n\n' | grep -qxF "$1"; }

fill_in() { # NAME VALUE...: replace these values in the template on standard input
    awk -v given="$*" 'BEGIN { n = split(given, words, " "); for (i = 1; i < n; i += 2) v[words[i]] = words[i + 1] }
        $1 in v { print $1, v[$1]; next } { print }'
}

make_queue() {
    qconf -sp orte >/dev/null 2>&1 || {
        printf '%s\n' 'pe_name orte' 'slots 99999' 'user_lists NONE' 'xuser_lists NONE' \
            'start_proc_args NONE' 'stop_proc_args NONE' 'allocation_rule $fill_up' \
            'control_slaves TRUE' 'job_is_first_task FALSE' 'urgency_slots min' \
            'accounting_summary FALSE' 'qsort_args NONE' >"$work/pe"
        change -Ap "$work/pe"
    }
    qconf -shgrp @allhosts >/dev/null 2>&1 || {
        printf '%s\n' 'group_name @allhosts' 'hostlist NONE' >"$work/group"
        change -Ahgrp "$work/group"
    }
    qconf -sq all.q >/dev/null 2>&1 || {
        qconf -sq | fill_in qname all.q hostlist @allhosts slots 1 pe_list orte \
            shell /bin/bash load_thresholds NONE rerun TRUE >"$work/queue"
        change -Aq "$work/queue"
    }
}

register() { # NAME PROCESSORS
    is_in "$1" "$admins" || change -ah "$1"
    is_in "$1" "$submitters" || change -as "$1"
    is_in "$1" "$executors" || {
        printf '%s\n' "hostname $1" 'load_scaling NONE' 'complex_values NONE' 'user_lists NONE' \
            'xuser_lists NONE' 'projects NONE' 'xprojects NONE' 'usage_scaling NONE' \
            'report_variables NONE' >"$work/host"
        change -Ae "$work/host"
    }
    is_in "$1" "$group" || {
        change -aattr hostgroup hostlist "$1" @allhosts
        qmod -d "all.q@$1" >/dev/null # before its daemon runs, so no job can start
        tell new "$1"
    }
    change -mattr queue slots "[$1=$2]" all.q
}

make_queue
admins=$(qconf -sh 2>/dev/null) || admins=
submitters=$(qconf -ss 2>/dev/null) || submitters=
executors=$(qconf -sel 2>/dev/null) || executors=
group=$(qconf -shgrp @allhosts)
set --
while read -r name processors gpus; do
    [ -n "$name" ] || continue
    register "$name" "$processors"
    set -- "$@" --gpus "$name=$gpus"
done <<END
$HOSTS
END
sge-jobs setup "$@" >"$work/setup" 2>&1 || fail "sge-jobs setup: $(cat "$work/setup")"
