"""`--mode=attention`: who looks at whom in a sentence, as arrays and as pictures.

Paper: Figures 3, 4 and 5.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_jax.cli.console.output_dir import OutputDirectory
from t2t_jax.cli.flags.options import Options
from t2t_jax.data.vocabulary.vocabulary import BOS, EOS
from t2t_jax.errors import ErrorCollector, UserError
from t2t_jax.evaluation.plots.figure import png, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from t2t_jax.data.vocabulary.vocabulary import Vocabulary
    from t2t_jax.inference.model import TranslationModel

_NAMES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}


class _Chosen(NamedTuple):
    """What is to be drawn: numbers of layers and heads, from 0."""

    layers: list[int]
    heads: list[int]


class _Pair(NamedTuple):
    """A sentence and its translation, as text and as what the model reads."""

    text: str
    translation: str
    source: list[int]
    target_inputs: list[int]


def run(options: Options) -> int:
    """Writes the attention within and between `options.text` and its translation."""
    options.workdir.require()
    chosen = _chosen(options)
    require_matplotlib()
    to = OutputDirectory(options.to)
    from t2t_jax.inference.load import load

    model = load(
        options.workdir.path,
        checkpoint=options.checkpoint,
        decoding=options.config.decoding,
    )
    pair = _pair(model, options)
    maps = _maps(model, pair)
    pieces = {
        "source": model.vocabularies.source.pieces(pair.source),
        "target": model.vocabularies.target.pieces(pair.target_inputs),
    }
    to.write("attention.npz", _npz(maps))
    record = {
        "text": pair.text,
        "translation": pair.translation,
        "translated_by": "user" if options.target else "model",
        **pieces,
        "checkpoint_step": model.step,
        "layers": chosen.layers,
        "heads": chosen.heads,
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    to.write("tokens.json", text + "\n")
    num_pictures = 0
    for name, figure in _pictures(maps, pieces, chosen=chosen):
        to.write(f"{name}.png", png(figure))
        num_pictures += 1
    print(
        f"Translation: {pair.translation}\n"
        f"Wrote {num_pictures} pictures and the weights behind them into {to.path}.",
        file=sys.stderr,
    )
    return 0


def _chosen(options: Options) -> _Chosen:
    """Reads `--layer` and `--head`, and judges all that needs no model."""
    config = options.config
    if config.architecture != "transformer":
        raise UserError(
            "--mode=attention draws the Transformer's attention, and --workdir="
            f"{options.workdir.path} holds architecture={config.architecture!r}. Name "
            "another --workdir."
        )
    problems = ErrorCollector()
    for flag, text in (("text", options.text), ("target", options.target)):
        problems.check(
            "\n" not in text,
            f"--{flag} must be one line, and is {text.count(chr(10)) + 1}. Give one "
            "sentence at a time.",
        )
    num_layers, num_heads = config.model.num_layers, config.model.num_heads
    layers = _numbers("layer", options.layer, count=num_layers, problems=problems)
    heads = _numbers("head", options.head, count=num_heads, problems=problems)
    problems.raise_if_any(UserError)
    return _Chosen(layers, heads)


def _numbers(
    flag: str, given: str, *, count: int, problems: ErrorCollector
) -> list[int]:
    """Reads `all` or numbers with commas between, each once and in order."""
    if given == "all":
        return list(range(count))
    known = [str(number) for number in range(count)]
    parts = [part.strip() for part in given.split(",")]
    problems.check(
        set(parts) <= set(known),
        f"--{flag}={given} must be all, or some of {','.join(known)}: the model's "
        f"{flag}s, counted from 0.",
    )
    return sorted(int(part) for part in set(parts) & set(known))


def _pair(model: TranslationModel, options: Options) -> _Pair:
    """Reads the sentence, and translates it where no translation is given."""
    text, target = _readable(options.text), _readable(options.target)
    most = options.config.decoding.max_source_length
    subwords = _encode(model.vocabularies.source, text, flag="text")
    _require_room("text", [*subwords, EOS], most=most, model=model)
    if target:
        translated = _encode(model.vocabularies.target, target, flag="target")
    else:
        target = model.translate([text])[0]
        # As in training, the decoder reads the text's own subwords.
        translated = model.vocabularies.target.encode([target])[0]
    most += options.config.decoding.max_extra_tokens
    _require_room("target", [BOS, *translated], most=most, model=model)
    return _Pair(text, target, [*subwords, EOS], [BOS, *translated])


def _readable(text: str) -> str:
    """Returns an argument as Unicode: bytes that are no UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _encode(vocabulary: Vocabulary, text: str, *, flag: str) -> list[int]:
    subwords = vocabulary.encode([text])[0]
    if not subwords:
        raise UserError(f"--{flag}={text!r} has no subwords. Give a sentence.")
    return subwords


def _require_room(
    flag: str, tokens: Sequence[int], *, most: int, model: TranslationModel
) -> None:
    config: Any = model.module.config
    if config.positions == "learned":
        most = min(most, config.max_positions)
    if len(tokens) > most:
        raise UserError(
            f"--{flag} is {len(tokens):,} tokens long with its begin or end, and at "
            f"most {most:,} are read. Shorten it."
        )


def _maps(model: TranslationModel, pair: _Pair) -> dict[str, Any]:
    import numpy as np

    from t2t_jax.evaluation.attention_maps import attention_maps

    source, target_inputs = np.array(pair.source), np.array(pair.target_inputs)
    return attention_maps(model.module, model.params, source, target_inputs)


def _npz(maps: dict[str, Any]) -> bytes:
    import numpy as np

    content = io.BytesIO()
    np.savez_compressed(content, **maps)
    return content.getvalue()


def _pictures(
    maps: dict[str, Any], pieces: dict[str, list[str]], *, chosen: _Chosen
) -> Iterator[tuple[str, Figure]]:
    """Draws both pictures of every use of attention in every chosen layer."""
    from t2t_jax.evaluation.plots.attention import draw_heat_maps, draw_lines, label_of

    words = {side: [label_of(piece) for piece in pieces[side]] for side in pieces}
    sides = {
        "encoder": (words["source"], words["source"]),
        "decoder": (words["target"], words["target"]),
        "cross": (words["target"], words["source"]),
    }
    for kind, weights in maps.items():
        numbers = "_".join(map(str, chosen.heads))
        named, numbered = "", "all heads"
        if len(chosen.heads) < weights.shape[1]:
            named = f"_head_{numbers}"
            numbered = f"head {numbers.replace('_', ', ')}"
        queries, keys = sides[kind]
        for layer in chosen.layers:
            title = f"{_NAMES[kind]}, layer {layer}, {numbered}"
            for way, draw in (("heat", draw_heat_maps), ("lines", draw_lines)):
                figure = draw(
                    weights[layer],
                    queries=queries,
                    keys=keys,
                    heads=chosen.heads,
                    title=title,
                )
                yield f"{kind}_layer_{layer}{named}_{way}", figure
