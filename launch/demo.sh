#!/usr/bin/env bash
# Trains the embedded English-German experiment, scores it on sentences it never saw,
# and shows some.
#   bash launch/demo.sh [WORKDIR]     (default: runs/phrasebook in the clone)
# A second call finds the run complete, and scores and translates again.
set -euo pipefail
case "${1:-}" in
  "" | /*) workdir=${1:-} ;;
  -*) echo "usage: bash launch/demo.sh [WORKDIR]" >&2; exit 64 ;;
  *) workdir=$PWD/$1 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh" ""
workdir=${workdir:-$PWD/runs/phrasebook}
python=$PWD/.venv/bin/python

"$python" -m t2t_jax.main --workdir="$workdir"

held_out=$(mktemp -d)
trap 'rm -rf "$held_out"' EXIT
"$python" -m t2t_jax.data.write_corpus phrasebook:test:500 \
  "$held_out/en" "$held_out/de"

echo "Scoring 500 sentences whose words were never combined in training …" >&2
"$python" -m t2t_jax.main --mode=evaluate --workdir="$workdir" \
  --source="$held_out/en" --reference="$held_out/de" > "$held_out/scores.json"
head -8 "$held_out/en" | "$python" -m t2t_jax.main --mode=translate \
  --workdir="$workdir" > "$held_out/translations"

echo
paste -d '\n' "$held_out/translations" <(head -8 "$held_out/de") <(head -8 "$held_out/en") |
  awk 'NR % 3 == 1 { ours = $0 }
       NR % 3 == 2 { right = $0 }
       NR % 3 == 0 { print "  " $0; print "    ours   " ours; print "    right  " right }'
cat <<EOF

Translate your own:   echo "The old teacher reads a book." |
                        $python -m t2t_jax.main --mode=translate --workdir=$workdir
Train on your text:   configs/own_text.py

EOF
"$python" - "$held_out/scores.json" <<'EOF'
import json
import sys

scores = json.load(open(sys.argv[1], encoding="utf-8"))
print(f"BLEU = {scores['bleu']:.1f} ({scores['bleu_signature']})")
EOF
