# Sourced by demo.sh and test.sh: goes to the root of the clone, makes .venv if there
# is none, and installs this package into it in editable form. The first argument is
# the list of extras, such as [test].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for candidate in "${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
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

# The stamp changes with setup.cfg and the extras, so an old environment is brought up
# to date, and an interrupted installation is taken up again.
stamp=.venv/.installed
wanted="$1 $(cksum < setup.cfg)"
[ -x .venv/bin/python ] || "$python" -m venv .venv
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  echo "Installing t2t_jax$1 into .venv (about a minute)" >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".$1"
  echo "$wanted" > "$stamp"
fi
