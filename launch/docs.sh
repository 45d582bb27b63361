#!/usr/bin/env bash
# Builds the site of docs/ into docs/_build/html/index.html; every warning is an error.
# Nothing is fetched but, the first time, the packages of the extra docs.
#   bash launch/docs.sh [--to=DIR]   builds into DIR instead of docs/_build
#   bash launch/docs.sh --print      shows the commands, installs and runs nothing
# Environment: PYTHON is the interpreter that .venv is made with, if there is none.
set -euo pipefail
to=docs/_build
case "${1:-}" in
  "") ;;
  --to=?*) to=$(realpath -m "${1#--to=}") ;;
  -h | --help) sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"; exit ;;
  --print) sed -n '/^needed=/,$p' "$0"; exit ;;
  *) echo "usage: bash launch/docs.sh [--help | --print | --to=DIR]" >&2; exit 64 ;;
esac
cd "$(dirname "$0")/.."
needed="import myst_nb, sphinx_book_theme, sphinx_copybutton, sphinx_design, t2t_jax"
if ! .venv/bin/python -c "$needed" 2>/dev/null; then
  source launch/environment.sh "[docs]"
fi
export JAX_PLATFORMS=cpu PYDEVD_DISABLE_FILE_VALIDATION=1
.venv/bin/sphinx-build --builder=html --fresh-env --write-all --nitpicky \
  --fail-on-warning --keep-going --quiet --jobs=auto -d "$to/doctrees" docs "$to/html"
echo "$to/html/index.html"
