"""`--mode=attention`: writes and plots the attention weights of a sentence.

Paper: Figures 3, 4 and 5.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_jax.cli.console.output_dir import OutputDirectory
from t2t_jax.cli.flags.views import AttentionOptions
from t2t_jax.errors import ErrorCollector, UserError
from t2t_jax.evaluation.plots.figure import render_png, require_matplotlib
from t2t_jax.model.config import decoder_layers
from t2t_jax.types import BOS, EOS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from t2t_jax.data.vocabulary.vocabulary import Vocabulary
    from t2t_jax.inference.model import TranslationModel

# The title of each kind of attention, and the sides of its queries and keys.
_KINDS = {
    "encoder": ("Encoder self-attention", "source", "source"),
    "decoder": ("Decoder self-attention", "target", "target"),
    "cross": ("Cross-attention", "target", "source"),
}


class _Selection(NamedTuple):
    """Indices of the layers and heads to plot, from 0."""

    layers: list[int]
    heads: list[int]


class _Pair(NamedTuple):
    """A sentence and its translation, as text and as token ids."""

    text: str
    translation: str
    source: list[int]
    target_inputs: list[int]


def run(options: AttentionOptions) -> int:
    """Writes and plots the attention weights of `options.text` and its translation."""
    options.workdir.require()
    selection = _select(options)
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
        "layers": selection.layers,
        "heads": selection.heads,
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    to.write("tokens.json", text + "\n")
    num_plots = 0
    for name, figure in _plots(maps, pieces, selection=selection):
        to.write(f"{name}.png", render_png(figure))
        num_plots += 1
    print(
        f"Translation: {pair.translation}\n"
        f"Wrote {num_plots} plots and the attention weights to {to.path}.",
        file=sys.stderr,
    )
    return 0


def _select(options: AttentionOptions) -> _Selection:
    """Parses `--layer` and `--head`, and checks the other flags."""
    config = options.config
    if config.architecture != "transformer":
        raise UserError(
            "--mode=attention plots the Transformer's attention, but --workdir="
            f"{options.workdir.path} has architecture={config.architecture!r}. Choose "
            "another --workdir."
        )
    problems = ErrorCollector()
    for flag, text in (("text", options.text), ("target", options.target)):
        problems.check(
            "\n" not in text,
            f"--{flag} must be one line, and has {text.count(chr(10)) + 1}. Pass one "
            "sentence.",
        )
    # A layer that only one of the stacks has is plotted for that one.
    num_layers = max(config.model.num_layers, decoder_layers(config.model))
    num_heads = config.model.num_heads
    layers = _numbers("layer", options.layer, count=num_layers, problems=problems)
    heads = _numbers("head", options.head, count=num_heads, problems=problems)
    problems.raise_if_any(UserError)
    return _Selection(layers, heads)


def _numbers(
    flag: str, given: str, *, count: int, problems: ErrorCollector
) -> list[int]:
    """Parses `all` or a comma-separated list into sorted unique indices."""
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


def _pair(model: TranslationModel, options: AttentionOptions) -> _Pair:
    """Encodes the sentence and its translation; translates it if none is given."""
    text, target = _replace_invalid(options.text), _replace_invalid(options.target)
    most = options.config.decoding.max_source_length
    subwords = _encode(model.vocabularies.source, text, flag="text")
    _check_length("text", [*subwords, EOS], most=most, model=model)
    if target:
        translated = _encode(model.vocabularies.target, target, flag="target")
    else:
        target = model.translate([text])[0]
        # As in training, the decoder reads the subwords of the detokenized text.
        translated = model.vocabularies.target.encode([target])[0]
    most = max(most, options.config.decoding.longest_output())
    _check_length("target", [BOS, *translated], most=most, model=model)
    return _Pair(text, target, [*subwords, EOS], [BOS, *translated])


def _replace_invalid(text: str) -> str:
    """Replaces bytes that are not UTF-8 by U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _encode(vocabulary: Vocabulary, text: str, *, flag: str) -> list[int]:
    subwords = vocabulary.encode([text])[0]
    if not subwords:
        raise UserError(f"--{flag}={text!r} has no subwords. Pass a sentence.")
    return subwords


def _check_length(
    flag: str, tokens: Sequence[int], *, most: int, model: TranslationModel
) -> None:
    config: Any = model.module.config
    if config.positions == "learned":
        most = min(most, config.max_positions)
    if len(tokens) > most:
        raise UserError(
            f"--{flag} has {len(tokens):,} tokens with bos or eos, and may have at "
            f"most {most:,}. Shorten it."
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


def _plots(
    maps: dict[str, Any], pieces: dict[str, list[str]], *, selection: _Selection
) -> Iterator[tuple[str, Figure]]:
    """Plots heat maps and lines for each kind of attention in each selected layer."""
    from t2t_jax.evaluation.plots.attention import label_of, plot_heat_maps, plot_lines

    labels = {side: list(map(label_of, pieces[side])) for side in pieces}
    heads = selection.heads
    for kind, weights in maps.items():
        name, queries, keys = _KINDS[kind]
        suffix, head_title = "", "all heads"
        if len(heads) < weights.shape[1]:
            suffix = f"_head_{'_'.join(map(str, heads))}"
            head_title = f"head {', '.join(map(str, heads))}"
        for layer in filter(range(len(weights)).__contains__, selection.layers):
            for way, plot in (("heat", plot_heat_maps), ("lines", plot_lines)):
                figure = plot(
                    weights[layer],
                    queries=labels[queries],
                    keys=labels[keys],
                    heads=heads,
                    title=f"{name}, layer {layer}, {head_title}",
                )
                yield f"{kind}_layer_{layer}{suffix}_{way}", figure
