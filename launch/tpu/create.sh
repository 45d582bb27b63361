#!/usr/bin/env bash
# Asks for a TPU and, when it is there, installs this clone on all its workers:
#   bash launch/tpu/create.sh --zone=us-west4-a --type=v5litepod-16 [OPTION …]
# Options beside those of settings.sh:
#   --type=TYPE        accelerator type; v5litepod-8 (one worker) if not given
#   --runtime=VERSION  that goes with it; v2-alpha-tpuv5-lite if not given
#   --spot             cheaper, and may be taken away at any time: delete.sh, this and run.sh again
#   --nfs=HOST:/SHARE  mounted at /mnt/t2t_jax on all workers. A TPU of more than one
#                      worker needs it for the workdir, which all of them write; a
#                      bucket mounted as files has no locks and no atomic renames
#   --print            shows what it would run, runs nothing
# Needs gcloud, logged in, with the TPU API switched on, and its key in the ssh agent
# (ssh-add ~/.ssh/google_compute_engine). It costs money from the moment it is there
# until delete.sh.
set -euo pipefail
synopsis="bash launch/tpu/create.sh --zone=ZONE [--name=NAME] [--project=PROJECT] \
[--type=TYPE] [--runtime=VERSION] [--spot] [--nfs=HOST:/SHARE] [--print]"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=launch/tpu/settings.sh
source "$root/launch/tpu/settings.sh"

type=v5litepod-8 runtime=v2-alpha-tpuv5-lite spot=() nfs=''
for argument in "$@"; do
  case "$argument" in
    --type=*) type=${argument#*=} ;;
    --runtime=*) runtime=${argument#*=} ;;
    --spot) spot=(--spot) ;;
    --nfs=*) nfs=${argument#*=} ;;
    *) take_setting "$argument" || refuse "unknown option '$argument'." ;;
  esac
done
settle

# A queued resource waits for its turn, where `tpu-vm create` would fail when nothing
# is free.
perform gcloud compute tpus queued-resources create "$name" "--node-id=$name" \
  "${place[@]}" "--accelerator-type=$type" "--runtime-version=$runtime" \
  ${spot[@]+"${spot[@]}"}

status=(gcloud compute tpus queued-resources describe "$name" "${place[@]}"
  '--format=value(state.state)')
if $print; then
  perform "${status[@]}"
else
  # A TPU may take days; whoever stops this here gives it again with the same name.
  until [ "$("${status[@]}")" = ACTIVE ]; do
    case "$("${status[@]}")" in
      FAILED | SUSPENDED)
        echo "error: the request for $name failed. See: ${status[*]}" >&2
        exit 69
        ;;
    esac
    echo "Waiting for $name …" >&2
    sleep 30
  done
fi

# The files of the clone that make up the package, and nothing that lies beside them.
archive=/tmp/t2t_jax
if ! $print; then archive=$(mktemp -d) && trap 'rm -rf "$archive"' EXIT; fi
perform tar -czf "$archive/clone.tar.gz" -C "$root" \
  setup.cfg pyproject.toml README.md LICENSE t2t_jax configs
perform gcloud compute tpus tpu-vm scp "$archive/clone.tar.gz" "$name:clone.tar.gz" \
  "${place[@]}" --worker=all

# The system's Python is 3.10 on many runtimes; uv brings one that is recent enough.
on_all_workers "set -e; mkdir -p $there; tar -xzf clone.tar.gz -C $there; \
python3 -m pip install --quiet --user uv; cd $there; \
~/.local/bin/uv venv --quiet --clear --python 3.12 .venv; \
~/.local/bin/uv pip install --quiet --python .venv/bin/python '.[tpu]'"

if [ -n "$nfs" ]; then
  # shellcheck disable=SC2016 # the workers expand it
  on_all_workers "set -e; sudo apt-get install --yes --quiet nfs-common; \
sudo mkdir -p /mnt/t2t_jax; mountpoint -q /mnt/t2t_jax || \
sudo mount -t nfs $(printf '%q' "$nfs") /mnt/t2t_jax; sudo chown "'"$USER"'" /mnt/t2t_jax"
fi
