#!/usr/bin/env bash
# Runs one experiment as N processes on this machine, which talk over loopback:
#   bash launch/local/processes.sh N [OPTION …] [-- ARGS…]
# starts `python -m t2t_jax.main ARGS` N times, each with the address of the first, the
# number of them and its own number. Nothing here needs editing. Options:
#   --devices=D   each process sees D simulated devices on the CPU
#   --gpus[=LIST] splits GPUs evenly, as --gpus=0,1,2,3; without LIST those of
#                 CUDA_VISIBLE_DEVICES, or all that nvidia-smi finds
#   --port=PORT   of the first process, a free one if not given
#   --failure-grace=S  when one has failed, the others have S seconds (15) to end
#                 with a code of their own; then they get SIGTERM, and after S more
#                 SIGKILL
#   --stop-grace=S  after SIGTERM, SIGINT or SIGUSR1, S seconds (300) to save and end
#   --print       shows the commands, runs nothing
# Environment: PYTHON is the interpreter; .venv of the clone, or python3, if not set.
#
# stdin and stdout are those of process 0 (a terminal is not read: pipe into this
# script); the stdout of the others is dropped. SIGTERM, SIGINT and SIGUSR1 are passed
# on to all. The exit code is that of the cause: 0 if all ended with 0, 75 if they
# stopped to be resumed, otherwise the code of the process that failed first, and
# never one of those that fell because of it. None of them outlives this script, and
# on Linux not even if it is killed.
#
# Works with the bash 3.2 of macOS, so without `wait -n`.
set -euo pipefail

usage() {
  echo "usage: bash launch/local/processes.sh N [--devices=D | --gpus[=LIST]]" \
    "[--port=PORT] [--failure-grace=S] [--stop-grace=S] [--print] [-- ARGS…]" >&2
  echo "error: $1" >&2
  exit 64
}

require_count() { # what it is, its value
  case "$2" in
    '' | *[!0-9]* | 0* | ???????*) usage "$1 must be a whole number from 1, got '$2'." ;;
  esac
}

help() { sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"; }

number=${1:-}
case "$number" in -h | --help) help; exit ;; esac
require_count N "$number"
shift
devices='' gpus='' port='' failure_grace=15 stop_grace=300 print=false
while [ $# -gt 0 ]; do
  case "$1" in
    --devices=*) devices=${1#*=} && require_count --devices "$devices" ;;
    --gpus) gpus=all ;;
    --gpus=*) gpus=${1#*=} ;;
    --port=*) port=${1#*=} && require_count --port "$port" ;;
    --failure-grace=*) failure_grace=${1#*=} && require_count --failure-grace "$failure_grace" ;;
    --stop-grace=*) stop_grace=${1#*=} && require_count --stop-grace "$stop_grace" ;;
    --print) print=true ;;
    -h | --help) help; exit ;;
    --) shift && break ;;
    *) usage "unknown option '$1'; what is for the program comes after --." ;;
  esac
  shift
done
if [ -n "$devices" ] && [ -n "$gpus" ]; then
  usage "--devices is for a CPU, --gpus for GPUs: give one of them."
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
if [ -z "${PYTHON:-}" ] && [ ! -x "$python" ]; then python=python3; fi
if ! command -v "$python" > /dev/null; then
  echo "error: no Python at '$python'. Run bash launch/demo.sh once, or set PYTHON." >&2
  exit 69
fi

# GPUs as an array, split into equal shares below.
cards=()
if [ -n "$gpus" ]; then
  if [ "$gpus" = all ]; then gpus=${CUDA_VISIBLE_DEVICES:-}; fi
  if [ -z "$gpus" ]; then
    gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader 2> /dev/null | paste -sd, -) ||
      usage "--gpus: nvidia-smi finds none here. Name them: --gpus=0,1."
  fi
  IFS=, read -r -a cards <<< "$gpus"
  if [ $((${#cards[@]} % number)) -ne 0 ]; then
    usage "--gpus: ${#cards[@]} GPUs cannot be split evenly over N=$number processes."
  fi
fi

# Below 32768, where no system takes the ports of outgoing connections from. Who
# answers there is a neighbour.
free_port() {
  local candidate
  while true; do
    candidate=$((20000 + RANDOM % 12000))
    (exec 3<> "/dev/tcp/127.0.0.1/$candidate") 2> /dev/null || break
  done
  echo "$candidate"
}
[ -n "$port" ] || port=$(free_port)

# If this script is killed with SIGKILL, Linux kills the processes.
guard=()
if setpriv --pdeathsig KILL true 2> /dev/null; then guard=(setpriv --pdeathsig KILL); fi

# The command of process $1 in the array `command`.
compose() {
  local share
  # Otherwise the first process would listen on all addresses of the machine.
  command=(${guard[@]+"${guard[@]}"} env "JAX_COORDINATOR_BIND_ADDRESS=127.0.0.1:$port")
  if [ -n "$devices" ]; then
    command+=(JAX_PLATFORMS=cpu
      "XLA_FLAGS=${XLA_FLAGS:+$XLA_FLAGS }--xla_force_host_platform_device_count=$devices")
  fi
  if [ -n "$gpus" ]; then
    share=$((${#cards[@]} / number))
    command+=("CUDA_VISIBLE_DEVICES=$(IFS=, && echo "${cards[*]:$(($1 * share)):$share}")")
  fi
  command+=("$python" -m t2t_jax.main ${arguments[@]+"${arguments[@]}"}
    "--coordinator_address=127.0.0.1:$port" "--num_processes=$number" "--process_id=$1")
}

arguments=("$@")
if $print; then
  for ((i = 0; i < number; i++)); do
    compose "$i"
    printf '%q ' "${command[@]}"
    echo
  done
  exit 0
fi

started=0
pids=()    # of process i, which leads a group of its own
running=() # 1 until its code is known

# Whatever ends this script, the groups go with it: the processes and their workers.
# Only of those that run: the number of a dead group may be somebody else's by now.
# shellcheck disable=SC2329 # the trap calls it
clear_away() {
  local i
  for ((i = 0; i < started; i++)); do
    if [ "${running[i]}" = 1 ]; then kill -KILL -- "-${pids[i]}" 2> /dev/null || true; fi
  done
}
trap clear_away EXIT

# To the processes and not to their workers: one that fell would look like a fault.
forward() {
  local i
  for ((i = 0; i < started; i++)); do
    if [ "${running[i]}" = 1 ]; then kill -s "$1" "${pids[i]}" 2> /dev/null || true; fi
  done
}

asked=''   # the signal by which the run is to stop
stop_by='' # second of this script at which patience with that ends
end_by=''  # likewise with those that stand while one has failed
kill_by='' # likewise with those that were told to go
# shellcheck disable=SC2329 # the traps call it
stop() {
  asked=$1
  forward "$1"
  [ -n "$stop_by" ] || stop_by=$((SECONDS + stop_grace))
}
trap 'stop TERM' TERM HUP
trap 'stop INT' INT
trap 'stop USR1' USR1

# With job control each process leads a group, so Ctrl-C reaches it once, through this
# script, and not again from the terminal (a second signal means "now"). Without it bash
# would make the processes deaf to SIGINT.
set -m
for ((i = 0; i < number; i++)); do
  compose "$i"
  if [ "$i" -gt 0 ]; then
    "${command[@]}" < /dev/null > /dev/null &
  elif [ -t 0 ]; then
    # Reading a terminal from another group would suspend the process for good.
    "${command[@]}" < /dev/null &
  else
    "${command[@]}" <&0 &
  fi
  pids[i]=$!
  running[i]=1
  started=$((i + 1))
done
set +m
# bash says of each job that a signal ended it where that was; this script says it once.
exec 3>&2 2> /dev/null
# Those that were not there yet when it came.
if [ -n "$asked" ]; then forward "$asked"; fi

# How much code $1 tells of the cause: what a process says for itself is before
# "stopped", that before "a device or the coordinator is gone", that before a signal.
weight() {
  case "$1" in
    0) echo 0 ;;
    75) echo 3 ;;
    69) echo 2 ;;
    *) if [ "$1" -ge 128 ]; then echo 1; else echo 4; fi ;;
  esac
}

# Takes notice of the code $2 of process $1.
judge() {
  local code=$2
  # A process that our signal met before it could say 75 has nothing unsaved.
  if [ -n "$asked" ] && [ "$code" -eq $((128 + $(kill -l "$asked"))) ]; then code=75; fi
  # What ends after we told it to go did not choose its code.
  if [ "$code" -eq 0 ] || [ -n "$kill_by" ]; then return; fi
  echo "processes.sh: process $1 ended with code $code." >&3
  if [ "$(weight "$code")" -gt "$(weight "$outcome")" ]; then outcome=$code; fi
  if [ "$code" -eq 75 ]; then
    [ -n "$stop_by" ] || stop_by=$((SECONDS + stop_grace))
  else
    [ -n "$end_by" ] || end_by=$((SECONDS + failure_grace))
  fi
}

# Whether the second $1 was set and has come.
is_due() { [ -n "$1" ] && [ "$SECONDS" -ge "$1" ]; }

outcome=0
while true; do
  remaining=0
  for ((i = 0; i < number; i++)); do
    if [ "${running[i]}" = 0 ]; then continue; fi
    if kill -0 "${pids[i]}"; then
      remaining=$((remaining + 1))
      continue
    fi
    running[i]=0
    code=0
    wait "${pids[i]}" || code=$?
    kill -KILL -- "-${pids[i]}" || true # workers that it left
    judge "$i" "$code"
  done
  if [ "$remaining" -eq 0 ]; then break; fi
  if is_due "$kill_by"; then
    forward KILL
  elif is_due "$stop_by"; then
    echo "processes.sh: not ended $stop_grace s after the stop: killed." >&3
    if [ "$outcome" -eq 0 ]; then outcome=137; fi
    kill_by=$SECONDS
  elif [ -z "$kill_by" ] && is_due "$end_by"; then
    forward TERM
    kill_by=$((SECONDS + failure_grace))
  fi
  # A signal to the whole group of this script, as Ctrl-C is one, ends the sleep too.
  sleep 0.1 || true
done
exit "$outcome"
