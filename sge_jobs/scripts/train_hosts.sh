#!/bin/bash
# Train one program on several hosts of a parallel environment: PyTorch by torchrun, or pycuda-nn train.
#
# Usage:
#   qsub -pe NAME SLOTS SCRIPT PROGRAM.py [options of the program]
#
# Examples:
#   qsub -pe spread 8 "$(sge-jobs scripts train_hosts)" train.py --epochs 30
#   qsub -pe spread 8 -v VENV="$HOME/venv",NCCL_SOCKET_IFNAME=eth0 \
#       "$(sge-jobs scripts train_hosts)" -m package.train --epochs 30
#   qsub -pe spread 8 "$(sge-jobs scripts train_hosts)" -m pycuda_nn train \
#       --data rows.npz --checkpoint net.npz
#
# The cell needs a parallel environment with control_slaves TRUE, and counts GPUs for each slot (YES instead of JOB for
# gpu in qconf -sc). All hosts must see the working directory and Python. Each host has a process (rank) for each of its
# GPUs, or for each slot if it has none. A rank that fails on one host ends the job on all hosts.
#
# Variables (qsub -v NAME=VALUE) reach the programs on all hosts. The script uses:
#   PYTHON   Python with PyTorch or pycuda_nn. Default: python3.
#   VENV     Python virtual environment to use instead of PYTHON.
#   MODULES  environment modules to load first, e.g. "cuda/13.0 python".
#   PORT     port of the first host at which the ranks of PyTorch meet. Default: a free one.
#
# "-m pycuda_nn train" gets --gpus all, --hosts, --host and --meet: its processes meet in a private folder in the working
# directory. A job that Grid Engine reruns resumes from its checkpoint.
#
# Exit codes: 0 done; 1 a rank failed;
# 100 invalid options: the job stays in the error state Eqw until "qmod -cj JOB".
#
#$ -S /bin/bash
#$ -cwd
#$ -j y
#$ -r y
#$ -l gpu=1

set -u

fail() { # CODE WORDS...
    code=$1
    shift
    printf 'Error: %s\n' "$*" >&2
    exit "$code"
}

usage() { sed -n '/^# Train/,/^# 100/s/^# \{0,1\}//p' "$0"; }

choose_python() {
    if [ -n "${MODULES-}" ]; then
        command -v module >/dev/null || . /etc/profile.d/modules.sh 2>/dev/null
        # shellcheck disable=SC2086
        module load $MODULES || fail 100 "cannot load the modules '$MODULES' on $(uname -n)"
    fi
    python=${PYTHON:-python3}
    [ -z "${VENV-}" ] || python=$VENV/bin/python
    "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' "$package" 2>/dev/null \
        || fail 100 "$python on $(uname -n) has no package $package: set PYTHON or VENV with qsub -v"
}

read_hosts() { # sets hosts and slots
    [ -r "${PE_HOSTFILE-}" ] || fail 100 "no parallel environment: submit with qsub -pe NAME SLOTS; see --help"
    hosts=()
    declare -gA slots=()
    while read -r host count _; do # a host has a line for each queue
        [ -n "${slots[$host]-}" ] || hosts+=("$host")
        slots[$host]=$((${slots[$host]-0} + count))
    done <"$PE_HOSTFILE"
}

environment() { # prints commands that set the variables of this job, without those of this host
    for name in $(compgen -e); do
        case $name in
            ARC | BASHOPTS | SHELLOPTS | CUDA_VISIBLE_DEVICES | ENVIRONMENT | HOSTNAME | JOB_* | NHOSTS | NQUEUES | NSLOTS | OLDPWD | PE | PE_* | PWD | \
                QUEUE | REQUEST | REQNAME | RESTARTED | SGE_* | SHLVL | TASK_ID | TMP | TMPDIR | _) ;;
            *) printf 'export %s=%q\n' "$name" "${!name}" ;;
        esac
    done
}

# Ends all processes of a task on another host, whose additional group is $1: Grid Engine does not end those of torchrun
# there, because they are in other sessions.
# shellcheck disable=SC2016
end='for signal in TERM KILL; do
    pids=$(grep -lsE "^Groups:.*\<$1\>" /proc/[0-9]*/status | grep -oE "[0-9]+" | grep -vx $$)
    kill -$signal $pids 2>/dev/null && sleep 3
done'

commands() { # RANK PROGRAM...: prints what a host executes
    host=${hosts[$1]}
    echo '{' # bash must read all of it before something else reads the pipe
    environment
    printf 'cd %q || exit 1\n' "$PWD"
    if [ "$1" != 0 ]; then
        printf 'exec 3<&0 </dev/null\n'
        printf 'set -- $(sed -n s/^add_grp_id=//p "$SGE_JOB_SPOOL_DIR/config") none\nend=%q\n' "$end"
        # The guard, in a session of its own, acts when the first host is gone.
        printf 'setsid bash -c "cat <&3; $end" guard "$1" >/dev/null 2>&1 &\n'
        printf 'exec 3<&-\n'
    fi
    printf 'commas=${CUDA_VISIBLE_DEVICES//[!,]/} ranks=%d\n' "${slots[$host]}"
    printf '[ -z "${CUDA_VISIBLE_DEVICES-}" ] || ranks=$((${#commas} + 1))\n'
    [ "$1" != 0 ] || printf 'exec '
    if [ "$package" = pycuda_nn ]; then
        printf '%q' "$python"
        printf ' %q' "${@:2}" --gpus all --hosts ${#hosts[@]} --host "$1" --meet "$meet"
    else
        printf '%q -m torch.distributed.run --nnodes=%d --node-rank=%d --nproc-per-node=$ranks' \
            "$python" ${#hosts[@]} "$1"
        printf ' --master-addr=%q --master-port=%d' "${hosts[0]}" "$port"
        printf ' %q' "${@:2}"
    fi
    printf ' </dev/null\n'
    # In another session, too: Grid Engine kills this one as soon as one of its first processes ends.
    [ "$1" = 0 ] || printf '[ $? = 0 ] || { setsid bash -c "$end" end "$1" >/dev/null 2>&1 & wait $!; exit 1; }\n'
    echo '}'
}

input() { # RANK PROGRAM...: prints the commands; its end tells the other hosts to stop
    commands "$@"
    while [ "$1" != 0 ] && [ -e "$alive" ] && kill -0 $$ 2>/dev/null; do sleep 0.5; done
}

start() { # RANK PROGRAM...
    # On standard input, because everybody can read the arguments of a process.
    if [ "$1" = 0 ]; then
        exec /bin/bash -s < <(input "$@")
    else
        exec qrsh -inherit "${hosts[$1]}" /bin/bash -s < <(input "$@")
    fi
}

stop() {
    rm -rf "$alive" ${meet:+"$meet"}
    kill "${pids[0]-}" 2>/dev/null
    for _ in {1..30}; do
        [ -n "$(jobs -rp)" ] || break
        sleep 1
    done
}

case ${1-} in
    -h | --help) usage; exit 0 ;;
    '') fail 100 "missing program; see --help" ;;
esac
package=torch
[ "$1 ${2-}" != "-m pycuda_nn" ] || package=pycuda_nn
read_hosts
choose_python
port=${PORT:-$("$python" -c 'import socket; s = socket.create_server(("", 0)); print(s.getsockname()[1])')}
printf '%s: job %s on %d hosts: %s\n' "$(date '+%F %T')" "${JOB_ID:-none}" ${#hosts[@]} "${hosts[*]}"
meet=
if [ "$package" = pycuda_nn ]; then
    meet=$(mktemp -d "$PWD/.meet.XXXXXX") || fail 1 "cannot write in $PWD"
    [ "${RESTARTED:-0}" = 0 ] || case " $* " in *' --checkpoint'*) set -- "$@" --resume ;; esac
fi
alive=$(mktemp "${TMPDIR:-/tmp}/alive.XXXXXX") || fail 1 "cannot write in ${TMPDIR:-/tmp} of $(uname -n)"
trap stop EXIT
pids=()
for rank in "${!hosts[@]}"; do
    start "$rank" "$@" &
    pids+=($!)
done
for host in "${hosts[@]}"; do
    wait -n || {
        code=$?
        for rank in "${!hosts[@]}"; do
            kill -0 "${pids[rank]}" 2>/dev/null || printf 'the program has ended on %s\n' "${hosts[rank]}" >&2
        done
        fail 1 "a rank failed (exit code $code)"
    }
done
