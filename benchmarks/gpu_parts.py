"""The parts of `gpu.sh`: the command of each, and how long it may take.

Every command prints one JSON object on stdout.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

PEAK_TFLOPS = 790
"""Of one H200 in bfloat16, as measured with a large matrix product."""

_HERE = Path(__file__).parent
_STEP_PEERS = {"hf_marian": ("torch", "transformers"), "torch": ("torch",)}
_DECODE_PEERS = {
    "ctranslate2": ("ctranslate2",),
    "hf_marian": ("torch", "transformers"),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the parts are made for.

    Attributes:
      rehearse: tiny sizes on the CPU.
      data: directory with `multi30k` and `multi30k_bpe`; "" without text.
      scratch: directory for runs, which may be lost.
    """

    rehearse: bool
    data: str
    scratch: Path


@dataclass(frozen=True)
class Part:
    """A command.

    Attributes:
      seconds: after which it is ended.
      missing: why it cannot run; "" if it can.
    """

    name: str
    seconds: int
    argv: list[str]
    missing: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def make_parts(settings: Settings) -> list[Part]:
    """Lists all parts, the most needed first; in a rehearsal one of each kind."""
    rows = {"tokenized_simcut": 360}
    if not settings.rehearse:
        rows = {"tokenized": 240, **rows, "raw": 240}
    return [
        *_checks(settings),
        *_steps(settings),
        _decoding(settings),
        *(_recipe(settings, row, seconds=limit) for row, limit in rows.items()),
        _time_to_score(settings),
    ]


def _script(name: str, *flags: str) -> list[str]:
    return [sys.executable, str(_HERE / name), *flags]


def _device(settings: Settings) -> str:
    return f"--device={'cpu' if settings.rehearse else 'gpu'}"


def _peers(settings: Settings, known: dict[str, tuple[str, ...]]) -> str:
    """Returns the peers that are installed; none in a rehearsal."""
    there = [name for name, needs in known.items() if all(map(find_spec, needs))]
    return ",".join(there) if there and not settings.rehearse else "none"


def _checks(settings: Settings) -> list[Part]:
    steps = 3 if settings.rehearse else 20
    size = "tiny" if settings.rehearse else "small"
    return [
        Part(
            "loss_float32",
            90,
            _script(
                *("gpu_checks.py", "loss", _device(settings)),
                *(f"--steps={steps}", f"--size={size}"),
            ),
            environment={"JAX_PLATFORMS": "cpu" if settings.rehearse else "cuda,cpu"},
        ),
        Part(
            "attention_kernels",
            90,
            _script(
                *("gpu_checks.py", "attention", _device(settings)),
                *(
                    ["--rows=2", "--length=16", "--heads=2"]
                    if settings.rehearse
                    else []
                ),
            ),
            environment={"JAX_PLATFORMS": "cpu" if settings.rehearse else "cuda"},
        ),
    ]


def _steps(settings: Settings) -> list[Part]:
    """Training steps beside peers, variants of ours, and text with its input."""
    common = [_device(settings), "--json"]
    if settings.rehearse:
        common += ["--rounds=1", "--steps=1"]
    else:
        common += ["--rounds=3", "--seconds=2", f"--peak_tflops={PEAK_TFLOPS}"]
    peers = f"--peer={_peers(settings, _STEP_PEERS)}"
    # torch.compile and XLA's search for the fastest products take most of it.
    limits = {} if settings.rehearse else {"base": 140, "big": 160, "small": 120}
    found = [
        Part(
            f"step_{size}",
            seconds,
            _script(
                "train_step.py", f"--size={size}", *common, peers, "--compile_peer"
            ),
        )
        for size, seconds in limits.items()
    ]
    size = "tiny" if settings.rehearse else "base"
    packed = ["--pairs=8", "--pairs_per_row=2"] if settings.rehearse else []
    packed = packed or ["--pairs=768", "--length=32", "--pairs_per_row=8"]
    variants = [f"--variant={variant}" for variant in _variants(settings)]
    found.append(
        Part(
            "step_variants",
            200,
            _script(
                *("train_step.py", f"--size={size}", *common, "--peer=none"),
                *(*packed, *variants),
            ),
        )
    )
    stem = f"{settings.data}/multi30k/train"
    text = f"text:{stem}.en.gz,{stem}.de.gz"
    text = text if settings.data else "phrasebook:train:20000"
    real = [f"--real={text}", "--tokens=24576", "--row_length=256"]
    if settings.rehearse:
        real = ["--real=phrasebook:train:200", "--tokens=256", "--vocabulary=150"]
        common[-1:] = ["--seconds=0.3"]
    variant = [] if settings.rehearse else ["--variant=data.packed_row_lengths=3"]
    found.append(
        Part(
            "step_on_text",
            100,
            _script(
                *("train_step.py", f"--size={size}", *common, "--peer=none", *real),
                *variant,
            ),
        )
    )
    return found


def _variants(settings: Settings) -> list[str]:
    """Lists the levers of a step, each by itself, on packed rows."""
    if settings.rehearse:
        return []
    kernels = ["cudnn", "cudnn_packed", *(["tokamax"] if find_spec("tokamax") else [])]
    return [
        *(f"model.attention={kernel}" for kernel in kernels),
        "JAX_OPTIMIZATION_LEVEL=O1",
        "training.loss_chunks=4",
        "model.remat=True",
    ]


def _decoding(settings: Settings) -> Part:
    flags = [
        *("--size=base", "--batches=1,32,512,4096", "--rounds=3", "--seconds=2"),
    ]
    if settings.rehearse:
        flags = ["--size=tiny", "--batches=1,3", "--cuts=3", "--rounds=1"]
        flags.append("--seconds=0.1")
    peers = f"--peer={_peers(settings, _DECODE_PEERS)}"
    argv = _script("decode.py", _device(settings), *flags, peers, "--json")
    return Part("decode", 180, argv)


def _recipe(settings: Settings, row: str, *, seconds: int) -> Part:
    """Multi30k's recipe: training, average, and BLEU of the test set."""
    flags = [f"--row={row}", f"--workdir={settings.scratch / row}"]
    missing = ""
    if settings.rehearse:
        flags.append("--rehearse")
    elif settings.data:
        flags.append(f"--data={settings.data}")
    else:
        missing = "it needs text: pass --data, or set T2T_JAX_TEST_DATA"
    platform = "cpu" if settings.rehearse else "cuda"
    return Part(
        f"recipe_{row}",
        seconds,
        _script("gpu_recipe.py", *flags),
        missing,
        {"JAX_PLATFORMS": platform},
    )


def _time_to_score(settings: Settings) -> Part:
    flags = [
        *("--config=multi30k_en_de:tokenized", "--targets=30,36,40", "--every=500"),
        *("--steps=4000", "--variant=optimizer.name=schedule_free"),
    ]
    if settings.rehearse:
        flags = ["--config=phrasebook", "--steps=2", "--every=2", "--targets=99"]
        flags.append(
            "--set=data.train=phrasebook:train:200,data.dev=phrasebook:dev:5,"
            "data.tokens_per_batch=256,data.row_length=64,data.max_length=64,"
            "decoding.beam_size=1,decoding.max_extra_tokens=5,"
            "vocabulary.size=150,model.num_layers=1,"
            "model.d_model=16,model.d_ff=32,model.num_heads=2,model.d_k=8,model.d_v=8,"
            f"data.cache_dir={settings.scratch}/cache"
        )
    missing = "" if settings.data or settings.rehearse else "it needs text: pass --data"
    out = f"--out={settings.scratch / 'scores'}"
    platform = "cpu" if settings.rehearse else "cuda"
    return Part(
        "time_to_score",
        240,
        _script("time_to_score.py", out, *flags, "--json"),
        missing,
        {"JAX_PLATFORMS": platform},
    )
