#!/usr/bin/env bash
# Sourced by demo.sh and test.sh: goes to the root of the clone, makes .venv if there
# is none, and installs this package into it in editable form. The first argument is
# the list of extras, such as [test], or empty. It can be run on its own, too:
#   bash launch/environment.sh [EXTRAS]
#   bash launch/environment.sh --print    shows the commands, installs nothing
# Environment: PYTHON is the interpreter that .venv is made with.
set -euo pipefail
extras=${1:-}
case "$extras" in
  -h | --help) sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "${BASH_SOURCE[0]}"; exit ;;
  --print) sed -n '/^cd /,$p' "${BASH_SOURCE[0]}"; exit ;;
  "" | \[*\]) ;;
  *) echo "usage: bash launch/environment.sh [--help | --print | EXTRAS]" >&2; exit 64 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
  [ -n "$candidate" ] || continue
  if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
      2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "${python:-}" ]; then
  echo "Python 3.11, 3.12 or 3.13 is needed; set PYTHON to one." >&2
  exit 69
fi

# An environment without pip is one whose making was interrupted.
.venv/bin/python -m pip --version > /dev/null 2>&1 || "$python" -m venv --clear .venv

# A stamp for each list of extras holds the setup.cfg that was installed: when that
# changes, or an installation was interrupted, it is done again.
if [ "$(cat ".venv/.installed$extras" 2>/dev/null)" != "$(cksum < setup.cfg)" ]; then
  echo "Installing t2t_jax$extras into .venv (about a minute)" >&2
  # Modules are compiled when they are first imported, and many never are. Where
  # PYTHONDONTWRITEBYTECODE is set, nothing would be kept, so they are compiled now.
  compile=--no-compile
  [ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || compile=--compile
  .venv/bin/python -m pip install --quiet --disable-pip-version-check "$compile" \
    -e ".$extras"
  cksum < setup.cfg | tee ".venv/.installed$extras" > .venv/.installed
fi
