#!/usr/bin/env bash
# Trains the embedded English-German experiment, scores it on sentences it never saw,
# and shows some.
#   bash launch/demo.sh [WORKDIR]     (default: runs/phrasebook in the clone)
#   bash launch/demo.sh --print       shows the commands, installs and runs nothing
# A second call finds the run complete, and scores and translates again.
set -euo pipefail
case "${1:-}" in
  "" | /*) workdir=${1:-} ;;
  -h | --help) sed -n -e 1d -e '/^#/!q' -e 's/^# //p' -e 's/^#$//p' "$0"; exit ;;
  --print) sed -n '/^source /,$p' "$0"; exit ;;
  -*) echo "usage: bash launch/demo.sh [--help | --print | WORKDIR]" >&2; exit 64 ;;
  *) workdir=$PWD/$1 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh" ""
workdir=${workdir:-$PWD/runs/phrasebook}
python=$PWD/.venv/bin/python

"$python" -m t2t_jax.main --workdir="$workdir"

held_out=$(mktemp -d)
trap 'rm -rf "$held_out"' EXIT
"$python" -m t2t_jax.data.corpora.write_corpus phrasebook:test:500 \
  "$held_out/en" "$held_out/de"
"$python" - "$held_out" <<'EOF'
import sys
from pathlib import Path

from t2t_jax.data.corpora.phrasebook import examples

for side in (0, 1):
    lines = "".join(f"{example[side]}\n" for example in examples())
    name = ("examples.en", "examples.de")[side]
    Path(sys.argv[1], name).write_text(lines, encoding="utf-8")
EOF

echo "Scoring 500 sentences whose words were never combined in training …" >&2
"$python" -m t2t_jax.main --mode=evaluate --workdir="$workdir" \
  --source="$held_out/en" --reference="$held_out/de" > "$held_out/scores.json"

# Prints a title, then each source with our translation and the right one below it.
show() {
  echo
  echo "$1"
  paste -d '\n' "$3" "$4" "$2" |
    awk 'NR % 3 == 1 { ours = $0 }
         NR % 3 == 2 { right = $0 }
         NR % 3 == 0 { print "  " $0; print "    ours   " ours; print "    right  " right }'
}

head -5 "$held_out/en" | cat - "$held_out/examples.en" |
  "$python" -m t2t_jax.main --mode=translate --workdir="$workdir" > "$held_out/ours"
show "Some of these sentences:" \
  <(head -5 "$held_out/en") <(head -5 "$held_out/ours") <(head -5 "$held_out/de")
show "What you might type, none of it in the training text:" \
  "$held_out/examples.en" <(tail -n +6 "$held_out/ours") "$held_out/examples.de"
cat <<EOF

It knows some 200 nouns, 60 adjectives and 100 verbs, and these kinds of sentences:
statements, denials and questions, in the present, past and future, with can, must,
want to and should; "is" and "there is"; orders; and after that, because, if and who.
Look at the run:      open $workdir/report.html in a browser
All its words:        $python $PWD/tools/phrasebook/word_list.py
Translate your own:   $python -m t2t_jax.main --mode=translate --workdir=$workdir
Or from a pipe:       echo "The old teacher reads a book." |
                        $python -m t2t_jax.main --mode=translate --workdir=$workdir
Train on your text:   docs/how_to/own_text.md

EOF
"$python" - "$held_out/scores.json" <<'EOF'
import json
import sys

scores = json.load(open(sys.argv[1], encoding="utf-8"))
print(f"BLEU = {scores['bleu']:.1f} ({scores['bleu_signature']})")
EOF
