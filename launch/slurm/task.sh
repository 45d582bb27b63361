#!/usr/bin/env bash
# One task of a job, started by job.sh through srun:
#   bash task.sh FIRST_CODE GRACE COMMAND…
# Runs COMMAND and notes its exit code in the file FIRST_CODE if it is not 0 and no
# other task was faster. It then waits GRACE seconds, because srun ends all tasks as soon
# as one has failed, and the others may be finishing the checkpoint.
# Environment: SLURM_PROCID, which srun sets.
set -euo pipefail

case "${1:-}" in
  -h | --help) sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"; exit ;;
esac
if [ "${1:-}" = --print ]; then
  shift 3
  printf '%q ' "$@" && echo
  exit 0
fi
if [ $# -lt 3 ]; then
  echo "usage: bash task.sh [--print] FIRST_CODE GRACE COMMAND…" >&2
  exit 64
fi
first_code=$1 grace=$2
shift 2

# Signals are for the program, and this shell outlives it.
trap : TERM INT USR1
code=0
"$@" || code=$?
if [ "$code" -ne 0 ]; then
  # With noclobber only one of all tasks can make the file.
  (set -o noclobber && echo "$code" > "$first_code") 2> /dev/null || true
  echo "launch/slurm: task ${SLURM_PROCID:-?} ended with code $code." >&2
  sleep "$grace" || true
fi
exit "$code"
