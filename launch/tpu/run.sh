#!/usr/bin/env bash
# Runs the program on all workers of a TPU that create.sh made:
#   bash launch/tpu/run.sh --zone=us-west4-a -- --config=wmt_en_de \
#     --workdir=/mnt/t2t_jax/wmt_en_de
#   bash launch/tpu/run.sh --zone=us-west4-a --stop     lets it save and stop (exit 75)
# What follows -- is for the program, with paths on the workers. Options beside those
# of settings.sh: --print shows what it would run, runs nothing.
#
# JAX finds the workers of a TPU by itself. The command runs as long as this one does,
# so start it where the connection stays (tmux on a machine of the same cloud). After
# anything that goes wrong the same command resumes; gcloud does not pass on the exit
# codes of the workers, their messages say what happened.
set -euo pipefail
synopsis="bash launch/tpu/run.sh --zone=ZONE [--name=NAME] [--project=PROJECT] [--print] \
(--stop | -- ARGS…)"
# shellcheck source=launch/tpu/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

stop=false
while [ $# -gt 0 ]; do
  case "$1" in
    --stop) stop=true ;;
    --) shift && break ;;
    *) take_setting "$1" || refuse "unknown option '$1'; what is for the program comes after --." ;;
  esac
  shift
done
settle

if $stop; then
  # The brackets keep the pattern from matching the shell that runs it.
  on_all_workers "pkill -TERM -u \$(id -u) -f '[p]ython -m t2t_jax.main'"
else
  # Quoted twice: for this shell, and for that of the workers.
  on_all_workers "cd $there && exec .venv/bin/python -m t2t_jax.main$(
    [ $# -eq 0 ] || printf ' %q' "$@"
  )"
fi
