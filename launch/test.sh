#!/usr/bin/env bash
# Checks the code: lint, format, types, tests and doctests. tests/tiers.py says which
# tests are in which tier.
#   bash launch/test.sh --quick   2 minutes: toy models and fakes, one run from end to end
#   bash launch/test.sh           6 minutes: models, steps, searches, 8 simulated devices,
#                                 and one fault of each kind
#   bash launch/test.sh --full    all, with processes, launchers, benchmarks and every
#                                 fault: what .ci/run runs after the demo
#   bash launch/test.sh --soak    half an hour of kills, signals and other devices
#   bash launch/test.sh --print   shows the commands, installs and runs nothing
set -euo pipefail
selection="not soak and not full" workers=2
case "${1:-}" in
  "" | --soak) ;;
  --quick) selection="quick and not soak" ;;
  --full) selection="not soak" workers=3 ;;  # Tests of processes wait for them.
  -h | --help) sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"; exit ;;
  --print) sed -n '/^source /,$p' "$0"; exit ;;
  *) echo "usage: bash launch/test.sh [--help | --print | --quick | --full | --soak]" >&2
     exit 64 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh" "[test]"

if [ "${1:-}" = --soak ]; then
  export T2T_JAX_TEST_OPTIMIZED=1  # as users' programs are compiled
  .venv/bin/pytest -n 2 -m soak tests
  T2T_JAX_TEST_KILLS=20 .venv/bin/pytest tests/faults/test_kills.py
  exec .venv/bin/python -m tests.faults.soak --minutes=30
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy & types=$!  # One core, beside tests of which many wait.
# In order, so that what a file sets up is set up once, but for what is left when a
# worker has nothing more to do.
.venv/bin/pytest -n "$workers" --dist=worksteal --durations=30 -m "$selection" ||
  code=$?
wait "$types" || exit 2
exit "${code:-0}"
