#!/bin/bash
# Test the GPUs of a job: memory, arithmetic with known results, bandwidth, error counters.
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
#   PYTHON         Python 3.9 or later. Default: python3.
#   SGE_JOBS_HOME  directory that contains sge_jobs. Default: the one of PYTHON, or of the queue's starter.
#
# Exit codes: 0 all GPUs passed; 99 a GPU failed, Grid Engine reruns the job (--bad-exit: another code);
# 100 no GPU or invalid options.
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

usage() { sed -n '2,/^# 100/s/^# \{0,1\}//p' "$0"; }

find_package() { # $0 is a copy in Grid Engine's spool directory, so it does not locate the package.
    if [ -z "${SGE_JOBS_HOME-}" ] && ! "$python" -c 'import sge_jobs.node' 2>/dev/null; then
        starter=$(sed -n 's/^starter_method=//p' "${SGE_JOB_SPOOL_DIR-}/config" 2>/dev/null)
        SGE_JOBS_HOME=${starter%/sge_jobs/node/gpu-starter}
    fi
    [ -z "${SGE_JOBS_HOME-}" ] || export PYTHONPATH="$SGE_JOBS_HOME${PYTHONPATH:+:$PYTHONPATH}"
    "$python" -c 'import sge_jobs.node' 2>/dev/null \
        || fail 100 "$python on $(uname -n) has no sge_jobs: set PYTHON or SGE_JOBS_HOME with qsub -v"
}

case ${1-} in -h | --help) usage; exit 0 ;; esac
python=${PYTHON:-python3}
find_package
exec "$python" -m sge_jobs.node.selftest "$@"
