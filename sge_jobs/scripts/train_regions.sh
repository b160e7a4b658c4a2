#!/bin/bash
# Train one model for each of many regions (datasets) as an array job: task N trains the region of line N.
#
# Usage:
#   qsub -t 1-COUNT SCRIPT --regions FILE --data PATTERN --out FOLDER [options of "pycuda-nn train"]
#
#   --regions FILE   Names of the regions, one per line. Required.
#   --data PATTERN   Data of a region; {region} is replaced by its name. Required.
#   --out FOLDER     Write FOLDER/REGION/model.npz, result.json and log.txt. Required.
#
# Examples:
#   qsub -t 1-41 "$(sge-jobs scripts train_regions)" --regions regions.txt \
#       --data 'data/{region}.npz' --out models --set epochs=30
#   qsub -t 1-41 -tc 6 -v VENV="$HOME/venv" "$(sge-jobs scripts train_regions)" \
#       --regions regions.txt --data 'data/{region}.csv' --out models --target price
#
# Variables (qsub -v NAME=VALUE): PYTHON, VENV and MODULES as in train_model.
#
# A region with a result.json is skipped, so the same command trains the missing regions. An
# interrupted region resumes from its checkpoint.
# Exit codes: 0 done; 1 training failed; 99 the GPU of this host does not respond, Grid Engine reruns the task;
# 100 invalid options: the task stays in the error state Eqw until "qmod -cj JOB".
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

regions='' data='' out=''
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --regions | --data | --out)
            [ $# -ge 2 ] || fail 100 "option $1 requires a value; see --help"
            case $1 in --regions) regions=$2 ;; --data) data=$2 ;; --out) out=$2 ;; esac
            shift 2
            ;;
        *) break ;;
    esac
done
[ -n "$regions" ] && [ -n "$data" ] && [ -n "$out" ] \
    || fail 100 "--regions, --data and --out are required, before all other options; see --help"
[ -r "$regions" ] || fail 100 "cannot read $regions in $PWD on $(uname -n)"
task=${SGE_TASK_ID:-undefined}
[ "$task" != undefined ] || fail 100 "this script requires an array job: qsub -t 1-$(grep -c . "$regions") ..."

region=$(grep . "$regions" | sed -n "${task}p" | tr -d '\r')
[ -n "$region" ] || { echo "No region $task in $regions: nothing to do."; exit 0; }
case $region in
    */* | .*) fail 100 "invalid region '$region': it must be a valid name of a directory" ;;
esac

folder=$out/$region
mkdir -p "$folder" || fail 100 "cannot create directory $folder"
if [ -s "$folder/result.json" ]; then
    echo "$folder/result.json exists: nothing to do."
    exit 0
fi
choose_python
check_gpu
printf '%s: region %s, job %s.%s on %s, GPU %s\n' "$(date '+%F %T')" "$region" "${JOB_ID:-none}" \
    "$task" "$(uname -n)" "${CUDA_VISIBLE_DEVICES:-none}" | tee -a "$folder/log.txt"
[ ! -s "$folder/model.npz" ] || set -- "$@" --resume
data=${data//\{region\}/"$region"} # quoted, because an & would stand for {region}
"$python" -m pycuda_nn train --data "$data" \
    --checkpoint "$folder/model.npz" --json "$@" \
    >"$folder/result.json.$$" 2>>"$folder/log.txt"
code=$?
if [ $code = 0 ]; then
    mv "$folder/result.json.$$" "$folder/result.json" || exit 1
    echo "Done: $folder/result.json"
    exit 0
fi
rm -f "$folder/result.json.$$"
tail -n 3 "$folder/log.txt" >&2
[ $code != 2 ] || exit 100
exit $code
