# shellcheck shell=bash
# Sourced by train.sbatch and translate.sbatch:
#   source launch/slurm/job.sh SCRIPT MODE ARGS…
# runs the program in that mode as the tasks of the job, and queues the job again where
# that is worth it. Nothing needs editing here but, perhaps, `retries` and `grace`.
retries=3 # how often a job is queued again after failures without a good stop between
grace=20  # seconds that the other tasks have to end when one has failed

set -euo pipefail

if [ "${BASH_SOURCE[0]}" = "$0" ]; then # it only has a use for the scripts
  sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"
  case "${1:-}" in -h | --help | --print) exit ;; esac
  exit 64
fi

script=$1 mode=$2
shift 2
show=false
arguments=()
for argument in "$@"; do
  if [ "$argument" = --print ]; then show=true; else arguments+=("$argument"); fi
done

root=${SLURM_SUBMIT_DIR:-$PWD}
python=${PYTHON:-$root/.venv/bin/python}
# Beside the output. The first task that fails writes its code; each failure is a line.
record=$root/${SLURM_JOB_NAME:-t2t_jax}-${SLURM_JOB_ID:-JOB}
first_code=$record.first-code
failures=$record.failures

# JAX finds coordinator, number and index of the tasks in what Slurm sets.
tasks=(srun --kill-on-bad-exit=1 bash "$root/launch/slurm/task.sh" "$first_code" "$grace"
  "$python" -m t2t_jax.main "--mode=$mode" ${arguments[@]+"${arguments[@]}"})

if $show; then
  printf '%q ' sbatch "launch/slurm/$script" ${arguments[@]+"${arguments[@]}"} && echo
  printf '%q ' "${tasks[@]}" && echo
  exit 0
fi
if [ -z "${SLURM_JOB_ID:-}" ]; then
  echo "usage: sbatch launch/slurm/$script ARGS…, or bash … --print ARGS…" >&2
  exit 64
fi
if [ ! -x "$python" ] && ! command -v "$python" > /dev/null; then
  echo "error: no Python at '$python'. Install into .venv of the clone, or set PYTHON." >&2
  exit 69
fi

echo "launch/slurm/$script: job $SLURM_JOB_ID, start $((${SLURM_RESTART_COUNT:-0} + 1))" >&2
rm -f "$first_code"
trap 'rm -f "$first_code"' EXIT
code=0
"${tasks[@]}" || code=$?
# srun returns the highest code: 75 or 137 of a task it stopped hides the 65 it is about.
if [ "$code" -ne 0 ] && [ -s "$first_code" ]; then code=$(cat "$first_code"); fi

# What goes on where it was has not failed when it is stopped: training, and a translation
# with --resume. Another translation starts anew, and may do so a few times.
again=false resumes=false
case "$mode ${arguments[*]-} " in "train "* | *" --resume"*) resumes=true ;; esac
if [ "$code" -eq 0 ] || { [ "$code" -eq 75 ] && $resumes; }; then
  rm -f "$failures"
  if [ "$code" -eq 75 ]; then again=true; fi
elif [ "$code" -eq 69 ] || [ "$code" -eq 70 ] || [ "$code" -eq 75 ] || [ "$code" -ge 128 ]; then
  # A device, a peer or the network is gone (134: JAX aborts when a peer is).
  echo "$(date '+%F %T') code $code on ${SLURM_JOB_NODELIST:-unknown nodes}" >> "$failures"
  if [ "$(wc -l < "$failures")" -le "$retries" ]; then again=true; fi
fi

# A job that the user cancels does not come here: Slurm ends this shell with the tasks.
if $again; then
  echo "launch/slurm/$script: ended with code $code, queued again." >&2
  scontrol requeue "$SLURM_JOB_ID"
else
  echo "launch/slurm/$script: ended with code $code." >&2
fi
exit "$code"
