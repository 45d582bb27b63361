"""`--mode=translate`: lines in, translations out, and nothing else on stdout."""

from __future__ import annotations

from t2t_jax.cli.lines import opened_output, read_stdin_or_file, write_lines
from t2t_jax.cli.options import Options


def run(options: Options) -> int:
    """Translates `options.input` to `options.output`; n lines become n lines."""
    options.workdir.require()
    lines = read_stdin_or_file(options.input)
    with opened_output(options.output, inputs=(options.input,)) as out:
        from t2t_jax.loading import load

        model = load(
            options.workdir.path,
            checkpoint=options.checkpoint,
            decoding=options.config.decoding,
        )
        write_lines(out, model.translate(lines))
    return 0
