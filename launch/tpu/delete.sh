#!/usr/bin/env bash
# Deletes a TPU and its queued resource, and what lies on the disks of its workers:
#   bash launch/tpu/delete.sh --zone=us-west4-a [--name=NAME]
# Copy the workdir first if it is not on the NFS share:
#   gcloud compute tpus tpu-vm scp --recurse NAME:t2t_jax/WORKDIR . --zone=ZONE
# Options beside those of settings.sh: --print shows what it would run, runs nothing.
# gcloud asks before it deletes.
set -euo pipefail
synopsis="bash launch/tpu/delete.sh --zone=ZONE [--name=NAME] [--project=PROJECT] [--print]"
# shellcheck source=launch/tpu/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

for argument in "$@"; do
  take_setting "$argument" || refuse "unknown option '$argument'."
done
settle

# --force takes the TPU with the request that made it.
perform gcloud compute tpus queued-resources delete "$name" "${place[@]}" --force
