#!/usr/bin/env bash
# All checks: lint, format, types, the test suite with the slow tests, the doctests.
#   bash launch/test.sh           all but what is marked full and soak
#   bash launch/test.sh --quick   without the tests marked slow
#   bash launch/test.sh --full    and the tests marked full: what continuous integration
#                                 runs; the demo is trained once
#   bash launch/test.sh --soak    half an hour of kills, signals and other devices
#   bash launch/test.sh --print   shows the commands, installs and runs nothing
set -euo pipefail
selection="not soak and not full"
case "${1:-}" in
  "" | --soak) ;;
  --quick) selection="not slow and not soak and not full" ;;
  --full) selection="not soak" ;;
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
.venv/bin/mypy
# In order, so that what a file sets up is set up once, but for what is left when one
# of the two has nothing more to do.
.venv/bin/pytest -n 2 --dist=worksteal --durations=30 -m "$selection"
