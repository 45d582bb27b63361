#!/usr/bin/env bash
# All checks: lint, format, types, the test suite with the slow tests, the doctests.
#   bash launch/test.sh           everything, as continuous integration runs it
#   bash launch/test.sh --quick   without the tests marked slow
set -euo pipefail
case "${1:-}" in
  "") selection=() ;;
  --quick) selection=(-m "not slow") ;;
  *) echo "usage: bash launch/test.sh [--quick]" >&2; exit 64 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh" "[test]"

.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/pytest -n 2 "${selection[@]}"
