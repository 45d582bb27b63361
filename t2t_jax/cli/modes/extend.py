"""`--mode=extend`: adds a language to a model, before it is trained on its text."""

from __future__ import annotations

import shlex

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags import options
from t2t_jax.cli.flags.modes import command_of
from t2t_jax.data.files.lines import read_lines, require_files


def run(options: options.ExtendOptions) -> None:
    """Writes the model of the workdir with `options.language` into `options.to`.

    Raises:
      UserError: options, workdir or text are invalid, or the model cannot be extended.
    """
    require_files(*options.learn_from, *options.keep)
    from t2t_jax.run.inference.extend import extend_model

    text, kept = (
        [line for path in paths for line in read_lines(path)]
        for paths in (options.learn_from, options.keep)
    )
    vocabulary, _, learned = extend_model(
        options.workdir.path,
        options.to,
        language=options.language,
        like=options.like,
        lines=text,
        pieces=options.pieces if options.learn_from else 0,
        kept=kept,
        checkpoint=options.checkpoint,
    )
    log(
        f"Wrote {options.to}: the tag of {options.language}, as of {options.like}, and "
        f"{len(learned):,} pieces, which makes {vocabulary.size:,}."
    )
    flags = ["--config=fine_tune", f"--config.init_from={options.to}"]
    flags += [f"--config.data.train=text:A,B#SOURCE-{options.language}"]
    log(f"To train it: {shlex.join([*command_of('train'), *flags])} --workdir=…")
