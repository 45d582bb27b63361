# shellcheck shell=bash
# Sourced by create.sh, run.sh and delete.sh: which TPU is meant. Each is a flag of those
# scripts, or a variable of the environment; flags go before.
#   --name=NAME        T2T_JAX_TPU_NAME     of the TPU and of its queued resource
#   --zone=ZONE        T2T_JAX_TPU_ZONE     where there is quota: gcloud compute tpus locations list
#   --project=PROJECT  T2T_JAX_TPU_PROJECT  gcloud's own if not given
# EDIT the defaults here if they are always the same.
set -euo pipefail

if [ "${BASH_SOURCE[0]}" = "$0" ]; then # it only has a use for the scripts
  sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"
  case "${1:-}" in -h | --help | --print) exit ;; esac
  exit 64
fi

name=${T2T_JAX_TPU_NAME:-t2t-jax}
zone=${T2T_JAX_TPU_ZONE:-}
project=${T2T_JAX_TPU_PROJECT:-}
print=false

# Where the clone lies on each worker, relative to the home directory.
# shellcheck disable=SC2034 # the scripts use it
there=t2t_jax

refuse() { # message; `synopsis` is the script's
  # shellcheck disable=SC2154
  echo "usage: $synopsis" >&2
  echo "error: $1" >&2
  exit 64
}

# Takes the flag $1 if it is one of all three scripts.
take_setting() {
  case "$1" in
    --name=*) name=${1#*=} ;;
    --zone=*) zone=${1#*=} ;;
    --project=*) project=${1#*=} ;;
    --print) print=true ;;
    -h | --help) sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"; exit ;;
    *) return 1 ;;
  esac
}

# To be called when all flags are read: what every gcloud command ends with.
settle() {
  [ -n "$zone" ] || refuse "which zone? Give --zone=ZONE or set T2T_JAX_TPU_ZONE."
  place=("--zone=$zone")
  if [ -n "$project" ]; then place+=("--project=$project"); fi
}

# Runs a command, or with --print shows it.
perform() {
  if $print; then
    printf '%q ' "$@"
    echo
  else
    "$@"
  fi
}

# Runs the shell command $1 on all workers.
on_all_workers() {
  perform gcloud compute tpus tpu-vm ssh "$name" "${place[@]}" --worker=all "--command=$1"
}
