#!/usr/bin/env bash
# Trains rows of a configuration file one after another, and compares them.
#   bash launch/sweep.sh [OPTIONS] configs/table3.py ROW… [-- ARGS…]
#   bash launch/sweep.sh --print …    shows what it would run, runs nothing
# Row ROW is trained in RUNS/NAME_ROW, as by --config=NAME.py:ROW; ARGS go to every row.
# The same command again resumes what was stopped and finds complete what is. The
# comparison goes to stdout and to RUNS/NAME.html; for the rows of Table 3 it has the
# paper's numbers beside ours.
# Options: --runs=DIR  parent of the runs (default: runs)
#          --to=FILE   page of the comparison (default: RUNS/NAME.html)
#          --slurm     as a job array, from the root of the clone: a job for each row,
#                      and one for the comparison when all have ended. See
#                      launch/slurm/sweep.sbatch, which has the lines to edit
# Environment: PYTHON is the interpreter; .venv of the clone if not set.
# Exit code: 0, or 75 when stopped by a signal, or the code of the first row that failed.
set -euo pipefail

usage() {
  echo "usage: bash launch/sweep.sh [--print] [--slurm] [--runs=DIR] [--to=FILE] CONFIG ROW… [-- ARGS…]" >&2
  exit 64
}

show=false slurm=false runs=runs to="" config=""
rows=() arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"; exit ;;
    --print) show=true ;;
    --slurm) slurm=true ;;
    --runs=?*) runs=${1#*=} ;;
    --to=?*) to=${1#*=} ;;
    --) shift && arguments=("$@") && break ;;
    -*) echo "launch/sweep.sh: unknown option $1; what is for the program goes after --" >&2; usage ;;
    *) if [ -z "$config" ]; then config=$1; else rows+=("$1"); fi ;;
  esac
  shift
done
if [ -z "$config" ] || [ ${#rows[@]} -eq 0 ]; then usage; fi
case "$runs" in *,*) echo "launch/sweep.sh: --runs must have no comma" >&2; usage ;; esac
for row in "${rows[@]}"; do
  case "$row" in *[!A-Za-z0-9_.-]*) echo "launch/sweep.sh: '$row' is not a row" >&2; usage ;; esac
done

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
name=$(basename "$config" .py)
to=${to:-$runs/$name.html}

workdirs=""
for row in "${rows[@]}"; do workdirs+="${workdirs:+,}$runs/${name}_$row"; done
compare=("$python" -m t2t_jax.main --mode=compare "--workdirs=$workdirs" "--to=$to")

print() { printf '%q ' "$@" && echo; }

if $slurm; then
  array=(sbatch --parsable "--array=0-$((${#rows[@]} - 1))" launch/slurm/sweep.sbatch
    "$config" "$runs" "${rows[@]}" -- ${arguments[@]+"${arguments[@]}"})
  after=(sbatch "--job-name=$name-compare" "--output=%x-%j.out" --wrap "$(print "${compare[@]}")")
  if $show; then
    print "${array[@]}"
    print "${after[@]:0:1}" --dependency=afterany:JOB "${after[@]:1}"
    exit
  fi
  mkdir -p "$runs"
  job=$("${array[@]}")
  job=${job%%;*} # a cluster's name may follow
  "${after[@]:0:1}" "--dependency=afterany:$job" "${after[@]:1}"
  exit
fi

# A signal goes on to the row that is trained, which saves and ends with 75.
child="" stopped=false
# shellcheck disable=SC2329 # the trap calls it
forward() {
  stopped=true
  if [ -n "$child" ]; then kill -TERM "$child" 2> /dev/null || true; fi
}
trap forward INT TERM USR1

run() {
  code=0
  "$@" &
  child=$!
  while true; do
    code=0 && wait "$child" || code=$?
    kill -0 "$child" 2> /dev/null || break # else a signal has ended only the waiting
  done
  child=""
  return "$code"
}

first_code=0 trained=0
for row in "${rows[@]}"; do
  train=("$python" -m t2t_jax.main --mode=train "--config=$config:$row"
    "--workdir=$runs/${name}_$row" ${arguments[@]+"${arguments[@]}"})
  if $show; then print "${train[@]}"; continue; fi
  echo "launch/sweep.sh: row $row, in $runs/${name}_$row" >&2
  code=0 && run "${train[@]}" || code=$?
  if $stopped || [ "$code" -eq 75 ]; then
    echo "launch/sweep.sh: stopped in row $row. The same command resumes." >&2
    exit 75
  fi
  if [ "$code" -ne 0 ]; then
    echo "launch/sweep.sh: row $row ended with code $code; going on with the next." >&2
    if [ "$first_code" -eq 0 ]; then first_code=$code; fi
  else
    trained=$((trained + 1))
  fi
done
if $show; then print "${compare[@]}"; exit; fi

if [ "$trained" -lt ${#rows[@]} ]; then
  workdirs=""
  for row in "${rows[@]}"; do
    if [ -f "$runs/${name}_$row/config.json" ]; then
      workdirs+="${workdirs:+,}$runs/${name}_$row"
    fi
  done
  compare=("$python" -m t2t_jax.main --mode=compare "--workdirs=$workdirs" "--to=$to")
fi
case "$workdirs" in
  *,*) code=0 && run "${compare[@]}" || code=$? ;;
  *) code=0 && echo "launch/sweep.sh: fewer than two rows to compare." >&2 ;;
esac
if [ "$first_code" -ne 0 ]; then exit "$first_code"; fi
exit "$code"
