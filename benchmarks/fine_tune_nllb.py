"""Fine-tunes a toy NLLB here and in PyTorch, with several seeds each; prints BLEU.

    python benchmarks/fine_tune_nllb.py OUT --seeds=3       # needs the extra `parity`

The model is trained in PyTorch from German to English, then from English to German in
both, with the same rule: Adam, equation 3's schedule, label smoothing and dropout 0.1,
and as many target tokens in a batch.
"""

import argparse
import io
import json
import random
import subprocess
import sys
from pathlib import Path

import sentencepiece
import torch
import transformers
from sacrebleu import corpus_bleu

from t2t_jax.data.corpora.open import open_corpus

CODES, SPECIAL = ("eng_Latn", "deu_Latn"), ("<s>", "<pad>", "</s>", "<unk>")
PEAK, WARMUP, PAIRS = 3e-3, 100, 56  # pairs of a batch: 964 target tokens

train, test = ([*open_corpus(f"phrasebook:{s}")] for s in ("train:4000", "test:200"))


def write_model(directory: Path) -> None:
    """Writes a random M2M100ForConditionalGeneration with a tokenizer of NLLB's."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for pair in train for line in pair),
        model_writer=written,
        **{"model_type": "bpe", "vocab_size": 500, "minloglevel": 2},
    )
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "sentencepiece.bpe.model").write_bytes(written.getvalue())
    first = 501  # after the pieces, one higher than SentencePiece's
    added = dict(enumerate(SPECIAL)) | dict(enumerate([*CODES, "<mask>"], first))
    plain = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    settings = {
        "tokenizer_class": "NllbTokenizer",
        "added_tokens_decoder": {
            str(number): {"content": token, "special": True, **plain}
            for number, token in added.items()
        },
        "additional_special_tokens": CODES,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    layers = {"layers": 2, "ffn_dim": 256, "attention_heads": 4, "layerdrop": 0.0}
    stacks = {f"{s}_{k}": v for s in ("encoder", "decoder") for k, v in layers.items()}
    config = transformers.M2M100Config(
        **{"vocab_size": first + 3, "d_model": 64, "dropout": 0.1, **stacks},
        **{"attention_dropout": 0.0, "activation_dropout": 0.0},
    )
    torch.manual_seed(0)
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(directory)


def open_model(directory: Path):
    """Returns the model and its tokenizer."""
    tokenizer = transformers.NllbTokenizer.from_pretrained(directory)
    model = transformers.M2M100ForConditionalGeneration.from_pretrained(directory)
    return model, tokenizer


def ids_of(tokenizer, line: str, language: str) -> list[int]:
    """Returns ids as both sides have them: language, pieces, eos."""
    ids = tokenizer(line, add_special_tokens=False)["input_ids"]
    return [tokenizer.convert_tokens_to_ids(language), *ids, tokenizer.eos_token_id]


def padded(rows: list[list[int]], fill: int) -> torch.Tensor:
    """Returns rows as one tensor."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def train_in_torch(directory: Path, way: tuple[int, int], *, steps: int, seed: int):
    """Trains a model in one direction; returns it and its tokenizer."""
    model, tokenizer = open_model(directory)
    torch.manual_seed(seed)
    chance, order = random.Random(seed), []
    rows = [
        [ids_of(tokenizer, pair[side], CODES[side]) for side in way] for pair in train
    ]
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    model.train()
    for step in range(1, steps + 1):
        if len(order) < PAIRS:
            order = chance.sample(rows, len(rows))
        batch, order = order[:PAIRS], order[PAIRS:]
        sources, targets = zip(*batch, strict=True)
        source, labels = padded(sources, 1), padded(targets, 1)
        shifted = torch.cat([torch.full((len(batch), 1), 2), labels[:, :-1]], 1)
        logits = model(
            input_ids=source, attention_mask=source != 1, decoder_input_ids=shifted
        ).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=1, label_smoothing=0.1
        )
        optimizer.param_groups[0]["lr"] = PEAK * min(
            step / WARMUP, (WARMUP / step) ** 0.5
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), tokenizer


def bleu_in_torch(model, tokenizer) -> float:
    """Scores greedy outputs from English to German."""
    source = padded([ids_of(tokenizer, pair[0], CODES[0]) for pair in test], 1)
    forced = tokenizer.convert_tokens_to_ids(CODES[1])
    found = model.generate(
        input_ids=source,
        attention_mask=source != 1,
        **{"forced_bos_token_id": forced, "num_beams": 1, "max_new_tokens": 60},
    )
    lines = tokenizer.batch_decode(found, skip_special_tokens=True)
    return corpus_bleu(lines, [[pair[1] for pair in test]]).score


def run(*arguments: str) -> str:
    """Runs this program; returns what it prints."""
    command = [sys.executable, "-m", "t2t_jax.main", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def bleu_here(out: Path, *, steps: int, seed: int) -> float:
    """Fine-tunes the imported model, and scores greedy outputs."""
    workdir = f"--workdir={out}/run_{seed}"
    keys = {
        "init_from": f"{out}/imported",
        "seed": seed,
        "steps": steps,
        "data.train": f"text:{out}/train.en,{out}/train.de#{'-'.join(CODES)}",
        "data.dev_pairs": 0,
        "data.tokens_per_batch": TOKENS,
        "data.row_length": 64,
        "data.max_length": 64,
        "data.cache_dir": f"{out}/cache",
        "evaluation.every_steps": 0,
        "evaluation.patience": 0,
        "optimizer.peak_learning_rate": PEAK,
        "optimizer.warmup_steps": WARMUP,
    }
    given = [f"--config.{key}={value}" for key, value in keys.items()]
    run("--config=fine_tune", workdir, *given)
    languages = [f"--{s}_language={c}" for s, c in zip(SIDES, CODES, strict=True)]
    files = [f"--source={out}/test.en", f"--reference={out}/test.de"]
    greedy = ["--config.decoding.beam_size=1", "--config.decoding.length_penalty=0"]
    return json.loads(run("--mode=evaluate", workdir, *languages, *files, *greedy))[
        "bleu"
    ]


SIDES, TOKENS = ("source", "target"), 1024


def main() -> None:
    """Prints the scores as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    out, steps, seeds = options.out, options.steps, range(1, options.seeds + 1)
    write_model(out / "toy")
    model, tokenizer = train_in_torch(out / "toy", (1, 0), steps=steps, seed=0)
    model.save_pretrained(out / "toy")
    for name, pairs in (("train", train), ("test", test)):
        for side, code in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (out / f"{name}.{code}").write_text(text, encoding="utf-8")
    found = {"before": bleu_in_torch(model, tokenizer)}
    found["torch"] = [
        bleu_in_torch(*train_in_torch(out / "toy", (0, 1), steps=steps, seed=seed))
        for seed in seeds
    ]
    run("--mode=import", f"--from={out}/toy", f"--to={out}/imported")
    found["here"] = [bleu_here(out, steps=steps, seed=seed) for seed in seeds]
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
