"""`--mode=compare`: compares several runs, as text on stdout and as a page."""

from __future__ import annotations

import sys

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.tables import Section, show
from t2t_jax.cli.console.text_io import check_page, write_file
from t2t_jax.cli.flags.options import CompareOptions


def run(options: CompareOptions) -> int:
    """Prints the comparison, and writes it to `options.to` if that is given.

    Raises:
      UserError: directories are not runs, or the page cannot be written.
    """
    from t2t_jax.report.comparison import compare, open_runs, require_several

    require_several(options.workdirs)
    to = check_page(options.to) if options.to else None
    runs = open_runs(options.workdirs)
    tables = compare(runs, log=log)
    sections = [
        Section(one.title, one.rows, one.header, one.numbers, one.notes)
        for one in tables
    ]
    show(sections, file=sys.stdout)
    if to is not None:
        from t2t_jax.report.comparison import compare_page

        write_file(to, compare_page(runs, tables))
    return 0
