"""`--mode=import`: imports a model of another toolkit as a model directory."""

from __future__ import annotations

import shlex
from pathlib import Path

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags import options
from t2t_jax.cli.flags.modes import command_of


def run(options: options.ImportOptions) -> None:
    """Imports the model `options.from_` into the directory `options.to`.

    Raises:
      UserError: the model is damaged or of an unsupported kind, a package is missing,
        or the directory is not new.
    """
    from t2t_jax.exchange.importing.imported import ImportOptions
    from t2t_jax.exchange.importing.importer import write_imported

    to = Path(options.to)
    log(f"Importing {options.from_} …")
    config = write_imported(
        options.from_,
        to,
        toolkit=options.format,
        options=ImportOptions(
            vocabularies=tuple(map(Path, options.vocabularies)),
            positions=options.positions,
            normalize=options.normalize,
        ),
    )
    command = shlex.join([*command_of("translate"), f"--workdir={to}"])
    log(
        f"Wrote {to}: d_model={config.network.d_model}, a vocabulary of "
        f"{config.vocabulary.size:,}. See its README.md, or translate: {command}"
    )
