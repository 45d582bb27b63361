#!/usr/bin/env bash
# Measures on one GPU what is worth knowing of this program, in parts:
#   bash benchmarks/gpu.sh OUT [--rehearse] [--minutes=9] [--data=DIR] [--only=PART,…]
# OUT gets results.json, rows.md, plots.png and log.txt. Parts that are done are skipped,
# so that the same command, with the OUT of before, goes on where it stopped. --rehearse
# does everything on the CPU, with tiny sizes.
#   --help    shows all flags and parts
# Environment: PYTHON is the interpreter; .venv of the clone, or python3, if not set.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
if [ -z "${PYTHON:-}" ] && [ ! -x "$python" ]; then python=python3; fi
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" "$root/benchmarks/gpu_run.py" "$@"
