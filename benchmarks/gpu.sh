#!/usr/bin/env bash
# Measures on one GPU what is worth knowing of this program, in parts:
#   bash benchmarks/gpu.sh OUT [--rehearse] [--minutes=9] [--data=DIR] [--only=PART,…]
# OUT gets PART.json of each part that is done, PART.failed of the others, log.txt, and
# their tables as rows.md. What is done is skipped and what failed comes last, so that the
# same command, with the OUT of before, goes on where it stopped.
#   --rehearse    all of it on the CPU, with tiny sizes, in an OUT of its own
#   --data=DIR    has multi30k and multi30k_bpe; T2T_JAX_TEST_DATA by default
# Exit codes: 0 if all is done, 1 if a part failed, 3 if time ran out.
# Environment: PYTHON is the interpreter; .venv of the clone, or python3, if not set.
# PEAK_TFLOPS is the GPU's in bfloat16; 790 is that of an H200, measured with products.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
if [ -z "${PYTHON:-}" ] && [ ! -x "$python" ]; then python=python3; fi
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
export XLA_PYTHON_CLIENT_PREALLOCATE=${XLA_PYTHON_CLIENT_PREALLOCATE:-false}

usage() { sed -n -e 1d -e '/^#/!q' -e 's/^# //p' "${BASH_SOURCE[0]}"; exit "$1"; }
out='' rehearse='' minutes=9 data=${T2T_JAX_TEST_DATA:-} only=''
for argument; do
  case "$argument" in
    -h | --help) usage 0 ;;
    --rehearse) rehearse=yes ;;
    --minutes=*) minutes=${argument#*=} ;;
    --data=*) data=${argument#*=} ;;
    --only=*) only=,${argument#*=}, ;;
    -*) usage 64 >&2 ;;
    *) out=$argument ;;
  esac
done
[ -n "$out" ] && [[ $minutes =~ ^[0-9]+$ ]] || usage 64 >&2
if [ -n "$data" ] && [ ! -d "$data/multi30k" ]; then
  echo "--data=$data has no folder multi30k." >&2
  exit 64
fi
mkdir -p "$out/runs"
out=$(cd "$out" && pwd)
deadline=$((SECONDS + 60 * minutes))
known='' failed='' late=''

# part NAME SECONDS PROGRAM FLAGS…: the program prints one JSON object on stdout. It is
# ended, with all that it started, after so many seconds.
part() {
  local name=$1 limit=$2 left=$((deadline - SECONDS)) code=0
  shift 2
  known+=" $name"
  if [ -n "$only" ] && [[ $only != *,$name,* ]]; then return; fi
  if [ -e "$out/$name.json" ]; then return; fi
  if [ "$pass" = first ] && [ -e "$out/$name.failed" ]; then return; fi
  if [ "$pass" = again ] && [[ $tried == *" $name "* ]]; then return; fi
  if [ "$left" -lt 20 ]; then late=yes; return; fi
  if [ "$limit" -gt "$left" ]; then limit=$left; fi
  tried+=" $name "
  echo "$name: at most $limit s" | tee -a "$out/log.txt" >&2
  timeout --kill-after=5 "$limit" "$@" > "$out/$name.part" 2>> "$out/log.txt" || code=$?
  if [ $code = 0 ] && [ -s "$out/$name.part" ]; then
    rm -f "$out/$name.failed"
    mv "$out/$name.part" "$out/$name.json"
    return
  fi
  rm -f "$out/$name.part"
  if [ $code = 124 ]; then late=yes; else failed=yes; fi
  { echo "exit code $code after at most $limit s"; tail -n 3 "$out/log.txt"; } \
    | tee "$out/$name.failed" >&2
}

# recipe ROW TRAINING_FLAGS… -- EVALUATION_FLAGS…: trains, averages and evaluates.
recipe() {
  local run=$out/runs/$1 training=()
  shift
  while [ "$1" != -- ]; do training+=("$1"); shift; done
  shift
  t2t() { "$python" -m t2t_jax.main "$@"; }
  t2t "${training[@]}" --workdir="$run" --config.data.cache_dir="$out/runs/cache"
  if [ ! -e "$run-average/model.json" ]; then
    t2t --mode=average --workdir="$run" --to="$run-average" --last="$last" >&2
  fi
  printf '{"row": "%s", "final": %s, "scores": %s}\n' "${run##*/}" \
    "$(grep '"final"' "$run/metrics.jsonl" | tail -n 1)" \
    "$(t2t --mode=evaluate --workdir="$run-average" "$@")"
}

# installed NAME…: those that Python can import, with commas; "none" if there is none.
installed() {
  "$python" -c 'import importlib.util as u, sys
print(",".join(n for n in sys.argv[1:] if u.find_spec(n)) or "none")' "$@"
}

rehearsal() {
  local step=(train_step.py --device=cpu --json --size=tiny --rounds=1 --peer=none)
  local model=(--config=phrasebook --config.steps=2 --config.vocabulary.size=150)
  local key
  for key in data.train=phrasebook:train:200 data.dev=phrasebook:dev:5 \
    data.tokens_per_batch=256 data.row_length=64 data.max_length=64 model.num_layers=1 \
    model.d_model=16 model.d_ff=32 model.num_heads=2 model.d_k=8 model.d_v=8 \
    evaluation.every_steps=0 checkpoint.every_steps=1 decoding.beam_size=2 \
    decoding.max_extra_tokens=5 training.simcut=3.0; do model+=("--config.$key"); done
  printf 'A dog runs.\nTwo men talk.\n' > "$out/runs/test.en"
  cp "$out/runs/test.en" "$out/runs/test.de"
  if [ "$(installed jax_cuda12_plugin jax_cuda13_plugin)" != none ]; then
    part estimate 300 "${run[@]}" gpu_checks.py estimate --configs=phrasebook --steps=1
  fi
  part repeats 300 "${run[@]}" gpu_checks.py repeats --device=cpu \
    --steps=2 --flags="${model[*]}"
  part loss_float32 90 "${run[@]}" gpu_checks.py loss --device=cpu --steps=3 --size=tiny
  part attention_kernels 90 "${run[@]}" gpu_checks.py attention --device=cpu \
    --rows=2 --length=16 --heads=2
  part step_variants 200 "${run[@]}" "${step[@]}" --steps=1 --pairs=8 --pairs_per_row=2
  part step_on_text 100 "${run[@]}" "${step[@]}" --seconds=0.3 --tokens=256 \
    --vocabulary=150 --real=phrasebook:train:200
  part decode 180 "${run[@]}" decode.py --device=cpu --json --size=tiny --batches=1,3 \
    --cuts=3 --rounds=1 --seconds=0.1 --peer=none
  part recipe_tokenized_simcut 360 bash -c "$recipe" _ tokenized_simcut "${model[@]}" -- \
    --source="$out/runs/test.en" --reference="$out/runs/test.de"
}

measurements() {
  local peak=--peak_tflops=${PEAK_TFLOPS:-790} row
  local step=(train_step.py --device=gpu --json --rounds=3 --seconds=2 "$peak")
  local peers=(--compile_peer "--peer=$step_peers") levers=()
  levers+=(--variant=model.attention=plain --variant=JAX_OPTIMIZATION_LEVEL=O1 --variant=training.loss_chunks=4)
  levers+=(--variant=model.remat=True)
  part estimate 240 "${run[@]}" gpu_checks.py estimate --steps=10
  part repeats 200 "${run[@]}" gpu_checks.py repeats --steps=200
  JAX_PLATFORMS=cuda,cpu part loss_float32 150 "${run[@]}" gpu_checks.py loss
  part attention_kernels 90 "${run[@]}" gpu_checks.py attention
  part step_base 240 "${run[@]}" "${step[@]}" --size=base "${peers[@]}"
  part step_big 240 "${run[@]}" "${step[@]}" --size=big "${peers[@]}"
  part step_small 200 "${run[@]}" "${step[@]}" --size=small "${peers[@]}"
  part step_variants 300 "${run[@]}" "${step[@]}" --size=base --peer=none --pairs=768 \
    --length=32 --pairs_per_row=8 "${levers[@]}"
  part step_on_text 100 "${run[@]}" "${step[@]}" --size=base --peer=none --tokens=24576 \
    --row_length=256 "--real=$text" --variant=data.packed_row_lengths=3
  part decode 180 "${run[@]}" decode.py --device=gpu --json --size=base --rounds=3 \
    --seconds=2 --batches=1,32,512,4096 "--peer=$decode_peers"
  if [ -z "$data" ]; then
    echo "Multi30k's recipe needs text: pass --data, or set T2T_JAX_TEST_DATA." >&2
    return
  fi
  export T2T_JAX_TEST_DATA=$data
  for row in tokenized:240 tokenized_simcut:360; do
    part "recipe_${row%:*}" "${row#*:}" bash -c "$recipe" _ "${row%:*}" \
      "--config=multi30k_en_de:${row%:*}" --config.training.loss_chunks=1 -- --protocol=tokenized --lowercase \
      "--source=$data/multi30k_bpe/test.2016.en.gz" \
      "--reference=$data/multi30k_bpe/test_2016_flickr.lc.norm.tok.de.gz"
  done
  part recipe_raw 240 bash -c "$recipe" _ raw --config=multi30k_en_de:raw \
    --config.training.loss_chunks=1 -- \
    "--source=$data/multi30k/test_2016_flickr.en.gz" \
    "--reference=$data/multi30k/test_2016_flickr.de.gz"
}

cd "$root/benchmarks"
run=("$python")
text=phrasebook:train:20000
if [ -n "$data" ]; then text="text:$data/multi30k/train.en.gz,$data/multi30k/train.de.gz"; fi
case "$(installed torch transformers ctranslate2)" in
  torch,transformers*) step_peers=hf_marian,torch decode_peers=hf_marian ;;
  torch*) step_peers=torch decode_peers=none ;;
  *) step_peers=none decode_peers=none ;;
esac
if [ "$(installed ctranslate2)" != none ]; then
  decode_peers=ctranslate2,${decode_peers#none}
  decode_peers=${decode_peers%,}
fi
last=10 kind=measurements
if [ -n "$rehearse" ]; then last=2 kind=rehearsal JAX_PLATFORMS=cpu; else JAX_PLATFORMS=cuda; fi
export JAX_PLATFORMS
if [ "$(cat "$out/kind" 2> /dev/null || echo $kind)" != $kind ]; then
  echo "$out has the other kind of results, $(cat "$out/kind"). Choose another OUT." >&2
  exit 64
fi
echo $kind > "$out/kind"
recipe="set -euo pipefail; $(declare -f recipe); $(declare -p python out last); recipe \"\$@\""
tried=' '
for pass in first again; do known='' && $kind; done
for name in ${only//,/ }; do
  if [[ " $known " != *" $name "* ]]; then
    echo "--only=$name is not known; known:$known" >&2
    exit 64
  fi
done
"$python" gpu_report.py "$out" | tee "$out/rows.md"
if [ -n "$failed" ]; then exit 1; fi
if [ -n "$late" ]; then exit 3; fi
