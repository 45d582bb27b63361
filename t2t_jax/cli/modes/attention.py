"""`--mode=attention`: writes and plots the attention weights of a sentence.

Paper: Figures 3, 4 and 5.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from t2t_jax.cli.console.text_io import make_directory, write_file
from t2t_jax.cli.evaluation.corpus import load_model
from t2t_jax.cli.flags.options import AttentionOptions
from t2t_jax.errors import ErrorCollector, UserError
from t2t_jax.evaluation.plots import render_png, require_matplotlib
from t2t_jax.model.config import decoder_layers
from t2t_jax.types import BOS, EOS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from t2t_jax.run.inference.model import TranslationModel

# The title of each kind of attention, and the sides of its queries and keys.
_KINDS = {
    "encoder": ("Encoder self-attention", "source", "source"),
    "decoder": ("Decoder self-attention", "target", "target"),
    "cross": ("Cross-attention", "target", "source"),
}


def run(options: AttentionOptions) -> None:
    """Writes and plots the attention weights of `options.text` and its translation."""
    selection = _select(options)
    require_matplotlib()
    to = make_directory(options.to)
    model = load_model(options)
    import numpy as np

    from t2t_jax.evaluation.attention_maps import attention_maps

    text, translation, tokens = _encode_pair(model, options)
    arrays = (np.array(side) for side in tokens.values())
    maps: dict[str, Any] = attention_maps(model.module, model.params, *arrays)
    sides = model.vocabularies._asdict()
    pieces = {side: sides[side].pieces(ids) for side, ids in tokens.items()}
    content = io.BytesIO()
    np.savez_compressed(content, **maps)
    write_file(to / "attention.npz", content.getvalue())
    record = {
        "text": text,
        "translation": translation,
        "translated_by": "user" if options.target else "model",
        **pieces,
        "checkpoint_step": model.step,
        **selection,
    }
    content_json = json.dumps(record, indent=2, ensure_ascii=False)
    write_file(to / "tokens.json", f"{content_json}\n")
    plots = _plots(maps, pieces, selection)
    for number, (name, figure) in enumerate(plots, start=1):  # noqa: B007
        write_file(to / f"{name}.png", render_png(figure))
    print(f"Translation: {translation}", file=sys.stderr)
    print(f"Wrote {number} plots and the weights to {to}.", file=sys.stderr)


def _select(options: AttentionOptions) -> dict[str, list[int]]:
    """Returns the `layers` and `heads` to plot, from 0; checks the other flags too."""
    config = options.config
    if config.architecture != "transformer":
        raise UserError(
            f"--mode=attention needs a Transformer, but --workdir="
            f"{options.workdir.path} has architecture={config.architecture!r}. Choose "
            "another --workdir."
        )
    problems = ErrorCollector()
    for flag, text in (("text", options.text), ("target", options.target)):
        lines = text.count("\n") + 1
        rule = f"--{flag} must be one line, and has {lines}. Pass one sentence."
        problems.check(lines == 1, rule)
    # A layer that only one of the stacks has is plotted for that one.
    num_layers = max(config.model.num_layers, decoder_layers(config.model))
    selection = {
        "layers": _numbers("layer", options.layer, num_layers, problems),
        "heads": _numbers("head", options.head, config.model.num_heads, problems),
    }
    problems.raise_if_any(UserError)
    return selection


def _numbers(flag: str, given: str, count: int, problems: ErrorCollector) -> list[int]:
    """Parses `all` or a comma-separated list into sorted unique indices."""
    known = {str(number): number for number in range(count)}
    parts = known if given == "all" else {part.strip() for part in given.split(",")}
    rule = (
        f"--{flag}={given} must be all, or some of {','.join(known)}: {flag}s, from 0."
    )
    problems.check(known.keys() >= {*parts}, rule)
    return [number for text, number in known.items() if text in parts]


def _encode_pair(
    model: TranslationModel, options: AttentionOptions
) -> tuple[str, str, dict[str, list[int]]]:
    """Encodes the sentence and its translation; translates it if none is given."""
    config = options.config.decoding
    # Bytes that are not UTF-8 become U+FFFD.
    text, target = (
        given.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        for given in (options.text, options.target)
    )
    tokens = {"source": [*model.vocabularies.source.encode_sources([text])[0], EOS]}
    _check("text", text, tokens["source"], most=config.max_source_length, model=model)
    # As in training, the decoder reads the subwords of the detokenized text.
    translation = target or model.translate([text])[0]
    tokens["target"] = [BOS, *model.vocabularies.target.encode([translation])[0]]
    if target or len(tokens["target"]) > 1:
        most = max(config.max_source_length, config.longest_output())
        _check("target", translation, tokens["target"], most=most, model=model)
    return text, translation, tokens


def _check(
    flag: str, text: str, tokens: Sequence[int], *, most: int, model: TranslationModel
) -> None:
    """Checks the tokens of a side, which include bos or eos."""
    config: Any = model.module.config
    if config.positions == "learned":
        most = min(most, config.max_positions)
    if len(tokens) == 1:
        raise UserError(f"--{flag}={text!r} has no subwords. Pass a sentence.")
    if len(tokens) > most:
        raise UserError(
            f"--{flag} has {len(tokens):,} tokens with bos or eos, and may have at "
            f"most {most:,}. Shorten it."
        )


def _plots(
    maps: dict[str, Any], pieces: dict[str, Any], chosen: dict[str, list[int]]
) -> Iterator[tuple[str, Figure]]:
    """Plots heat maps and lines for each kind of attention in each selected layer."""
    from t2t_jax.evaluation.plots import (
        LayerAttention,
        label_of,
        plot_heat_maps,
        plot_lines,
    )

    labels = {side: list(map(label_of, pieces[side])) for side in pieces}
    heads, names = chosen["heads"], list(map(str, chosen["heads"]))
    for kind, weights in maps.items():
        name, queries, keys = _KINDS[kind]
        is_part = len(heads) < weights.shape[1]
        suffix = f"_head_{'_'.join(names)}" if is_part else ""
        head_title = f"head {', '.join(names)}" if is_part else "all heads"
        for layer in filter(range(len(weights)).__contains__, chosen["layers"]):
            title = f"{name}, layer {layer}, {head_title}"
            file = f"{kind}_layer_{layer}{suffix}"
            sides = labels[queries], labels[keys]
            drawn = LayerAttention(weights[layer], *sides, heads, title)
            yield f"{file}_heat", plot_heat_maps(drawn)
            yield f"{file}_lines", plot_lines(drawn)
