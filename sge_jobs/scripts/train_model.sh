#!/bin/bash
# Train one model with pycuda_nn as one Grid Engine job with its own GPU, or on several of them.
#
# Usage:
#   qsub SCRIPT --data FILE --checkpoint FILE [further options of "pycuda-nn train"]
#
# Examples:
#   qsub "$(sge-jobs scripts train_model)" --data digits --checkpoint digits.npz --set epochs=30
#   qsub -l gpu=4,h_rt=3600 -v VENV="$HOME/venv" "$(sge-jobs scripts train_model)" \
#       --data 'my data.npz' --checkpoint model.npz --config net.toml
#
# Variables (qsub -v NAME=VALUE):
#   PYTHON   Python with pycuda_nn. Default: python3.
#   VENV     Python virtual environment to use instead of PYTHON.
#   MODULES  environment modules to load first, e.g. "cuda/13.0 python".
#
# With several GPUs (-l gpu=4), the options of the job get "--gpus all", unless they contain --gpus, --device or
# "--backend numpy".
#
# A job that Grid Engine reruns (lost host, preemption) resumes from its checkpoint.
# Exit codes: 0 done; 1 training failed; 99 the GPU of this host does not respond, Grid Engine reruns the job;
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
    "$python" -c 'import pycuda_nn' 2>/dev/null \
        || fail 100 "$python on $(uname -n) has no pycuda_nn: set PYTHON or VENV with qsub -v"
}

check_gpu() {
    [ -n "${CUDA_VISIBLE_DEVICES-}" ] && command -v nvidia-smi >/dev/null || return 0
    nvidia-smi -L >/dev/null 2>&1 || fail 99 "nvidia-smi fails on $(uname -n)"
}

checkpoint='' data='' resume=yes several=
case ${CUDA_VISIBLE_DEVICES-} in *,*) several=yes ;; esac
set -- "$@" --end-of-arguments
while [ "$1" != --end-of-arguments ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --data) data=$2 ;;
        --data=*) data=${1#*=} ;;
        --checkpoint) checkpoint=$2 ;;
        --checkpoint=*) checkpoint=${1#*=} ;;
        --resume | --overwrite) resume= ;;
        --gpus | --gpus=* | --device | --device=* | --backend=numpy) several= ;;
        --backend) [ "$2" != numpy ] || several= ;;
    esac
    set -- "$@" "$1"
    shift
done
shift
[ -n "$data" ] || fail 100 "missing option --data; see --help"
[ "${RESTARTED:-0}" = 0 ] || [ -z "$checkpoint" ] || [ -z "$resume" ] || set -- "$@" --resume


choose_python
check_gpu
if [ -n "$several" ]; then
    if "$python" -m pycuda_nn train --help 2>&1 | grep -q -e '^ *--gpus '; then
        set -- "$@" --gpus all
    else
        echo "This pycuda_nn has no option --gpus: it trains on the first GPU of $CUDA_VISIBLE_DEVICES."
    fi
fi
printf '%s: job %s on %s, GPU %s\n' "$(date '+%F %T')" "${JOB_ID:-none}" "$(uname -n)" \
    "${CUDA_VISIBLE_DEVICES:-none}"
"$python" -m pycuda_nn train "$@"
code=$?
[ $code != 2 ] || exit 100
exit $code
