#!/usr/bin/env bash
# Runs the program as one process on 8 devices, to try out meshes and batches:
#   bash launch/local/eight_devices.sh [--gpus] [--print] ARGS…
# The devices are simulated on the CPU: they show what is equal and what fits, while
# their speed means nothing. Options, before those of the program:
#   --gpus    the first 8 GPUs of CUDA_VISIBLE_DEVICES, or of this machine, instead
#   --print   shows the command, runs nothing
#   --help    shows this text (after another argument it is the program's)
# Environment: PYTHON is the interpreter; .venv of the clone, or python3, if not set.
# Nothing here needs editing.
set -euo pipefail

gpus=false print=false
while [ $# -gt 0 ]; do
  case "$1" in
    --gpus) gpus=true ;;
    --print) print=true ;;
    -h | --help) sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"; exit ;;
    *) break ;;
  esac
  shift
done

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
if [ -z "${PYTHON:-}" ] && [ ! -x "$python" ]; then python=python3; fi

if $gpus; then
  visible=$(echo "${CUDA_VISIBLE_DEVICES:-0,1,2,3,4,5,6,7}" | cut -d, -f1-8)
  command=(env "CUDA_VISIBLE_DEVICES=$visible")
else
  command=(env JAX_PLATFORMS=cpu
    "XLA_FLAGS=${XLA_FLAGS:+$XLA_FLAGS }--xla_force_host_platform_device_count=8")
fi
command+=("$python" -m t2t_jax.main "$@")

if $print; then
  printf '%q ' "${command[@]}"
  echo
else
  exec "${command[@]}"
fi
