#!/bin/bash
# Test the GPUs of a job: memory, arithmetic against known answers, bandwidth, errors counted.
#
# Usage:
#   qsub -l gpu=N SCRIPT [--seconds S] [--json] [--bad-exit CODE]
#
# Examples:
#   qsub "$(sge-jobs scripts gpu_selftest)" --seconds 60
#   for h in $(qconf -sel); do
#       qsub -l gpu=2,hostname=$h "$(sge-jobs scripts gpu_selftest)" --bad-exit 1
#   done
#
# Variables (qsub -v NAME=VALUE):
#   PYTHON         a Python of 3.9 or later; default python3
#   SGE_JOBS_HOME  folder that has sge_jobs in it; default: Python's own, else the starter's
#
# Exit codes: 0 sound; 99 not sound, run again elsewhere (--bad-exit names another); 100 no GPU, wrong call.
#
#$ -S /bin/bash
#$ -cwd
#$ -j y
#$ -l gpu=1

set -u

fail() { # CODE WORDS...
    code=$1
    shift
    printf 'Error: %s\n' "$*" >&2
    exit "$code"
}

usage() { sed -n '2,/^# Exit codes/s/^# \{0,1\}//p' "$0"; }

find_package() { # $0 is a copy in Grid Engine's spool: it says nothing of where the package is.
    if [ -z "${SGE_JOBS_HOME-}" ] && ! "$python" -c 'import sge_jobs.node' 2>/dev/null; then
        starter=$(sed -n 's/^starter_method=//p' "${SGE_JOB_SPOOL_DIR-}/config" 2>/dev/null)
        SGE_JOBS_HOME=${starter%/sge_jobs/node/gpu-starter}
    fi
    [ -z "${SGE_JOBS_HOME-}" ] || export PYTHONPATH="$SGE_JOBS_HOME${PYTHONPATH:+:$PYTHONPATH}"
    "$python" -c 'import sge_jobs.node' 2>/dev/null \
        || fail 100 "$python on $(uname -n) has no sge_jobs: set PYTHON or SGE_JOBS_HOME by qsub -v"
}

case ${1-} in -h | --help) usage; exit 0 ;; esac
python=${PYTHON:-python3}
find_package
exec "$python" -m sge_jobs.node.selftest "$@"
