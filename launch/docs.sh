#!/usr/bin/env bash
# Writes the generated parts of docs/ anew, which are committed, and builds the site from
# them into docs/_build/html/index.html; every warning is an error.
# Nothing is fetched but, the first time, the packages of the extra docs.
#   bash launch/docs.sh [--to=DIR]   builds into DIR instead, from the pages as they are
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
needed="import myst_nb, sphinx_book_theme, sphinx_copybutton, t2t_jax"
if ! .venv/bin/python -c "$needed" 2>/dev/null; then
  source launch/environment.sh "[docs]"
fi
export JAX_PLATFORMS=cpu PYDEVD_DISABLE_FILE_VALIDATION=1
[ "$to" != docs/_build ] || .venv/bin/python docs/_generate >&2
.venv/bin/sphinx-build --builder=html --fresh-env --write-all --nitpicky \
  --fail-on-warning --keep-going --quiet --jobs=auto -d "$to/doctrees" docs "$to/html"
echo "$to/html/index.html"
