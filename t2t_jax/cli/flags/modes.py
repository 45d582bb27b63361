"""The modes of the command line: descriptions, examples and properties."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

MODES = {
    "train": "trains a model, or resumes the run in --workdir",
    "prepare": "reads, filters and encodes the text of a run, without training",
    "translate": "translates stdin (or --input) to stdout (or --output)",
    "evaluate": "scores translations of --source against --reference",
    "score": "prints the log-probability of each pair of --source and --reference",
    "average": "averages several checkpoints into the model directory --to",
    "export": "exports the model for other software, as --format, into directory --to",
    "recover": "restores config.json and vocab.model of a run from a checkpoint",
    "describe": "shows a configuration, its size and its costs, without training",
    "attention": "plots the attention weights for a --text into the directory --to",
    "show_batch": "prints the text of the batch of a training --step",
    "figures": "plots equation 3 and the positional encoding into the directory --to",
}
"""One line about each mode."""

EXAMPLES = {
    "train": (
        "train",
        "train --config=own_text --workdir=runs/mine --config.steps=5000",
    ),
    "prepare": (
        "prepare --config=own_text --workdir=runs/mine",
        "prepare --config=wmt_en_de --config.data.workers=8",
    ),
    "translate": (
        "translate --workdir=runs/mine --input=in.txt --output=out.txt",
        "translate --workdir=runs/mine --beam_size=8 --n_best=8 --format=jsonl",
    ),
    "evaluate": (
        "evaluate --workdir=runs/mine --source=test.en --reference=test.de",
        "evaluate --workdir=runs/mine --source=test.en --reference=test.de "
        "--protocol=vaswani2017 --hypotheses=out.de",
    ),
    "score": (
        "score --workdir=runs/mine --source=test.en --reference=test.de",
        "score --workdir=runs/mine --source=test.en --reference=test.de "
        "--format=jsonl --output=scores.jsonl",
    ),
    "average": (
        "average --workdir=runs/mine --last=5 --to=runs/mine-average",
        "average --workdir=runs/mine --sliding --last=3",
    ),
    "export": (
        "export --workdir=runs/mine --format=model_dir --to=mine",
        "export --workdir=runs/mine --format=ctranslate2 --quantization=int8 "
        "--to=mine-ct2",
    ),
    "recover": (
        "recover --workdir=runs/mine",
        "recover --workdir=runs/mine --config=own_text:small",
    ),
    "describe": (
        "describe --config=table3:C_N2",
        "describe --config=wmt_en_de_big --devices=8 --peak_tflops=312 --format=json",
    ),
    "attention": (
        'attention --workdir=runs/mine --text="A dog barks." --to=maps',
        'attention --workdir=runs/mine --text="A dog barks." --layer=0,1 --head=all '
        "--to=maps",
    ),
    "show_batch": (
        "show_batch --workdir=runs/mine --step=1",
        "show_batch --workdir=runs/mine --step=4000",
    ),
    "figures": (
        "figures --to=figures",
        "figures --to=runs/figures",
    ),
}
"""Two command lines of each mode, without the program's name."""

DISTRIBUTED_MODES = ("train", "translate", "evaluate")
"""The modes that can run on several processes."""

READ_ONLY_MODES = ("translate", "evaluate", "score")
"""The modes that do not write to a run: a signal may end them at any time."""

READS_RUN = (
    *("translate", "evaluate", "score", "average"),
    *("export", "recover", "attention", "show_batch"),
)
"""The modes that require `--workdir` of an existing run or model."""

WITHOUT_RUN = ("recover", "figures")
"""The modes that do not read the configuration of the run in `--workdir`."""


def command_of(mode: str) -> list[str]:
    """Returns the first words of a command line for a mode.

    They have the form in which this program was started.
    """
    started = sys.argv[0]
    if Path(started).name == "t2t-jax":
        is_found = shutil.which("t2t-jax") == started
        return ["t2t-jax" if is_found else started, mode]
    module = "t2t_jax" if Path(started).name == "__main__.py" else "t2t_jax.main"
    return ["python", "-m", module, f"--mode={mode}"]
