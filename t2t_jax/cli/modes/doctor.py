"""`--mode=doctor`: checks the machine and the installation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from t2t_jax.cli.flags.options import DoctorOptions
from t2t_jax.errors import UnavailableError
from t2t_jax.report.doctor import check_environment

_TITLES = {"variables": "environment variables"}
_UNNAMED = ("versions", "variables")  # whose messages begin with the name


def run(options: DoctorOptions) -> int:
    """Prints a line for each check; returns 0, or 69 if one of them is an error."""
    report = check_environment(options.workdir.path, is_given=options.workdir_given)
    if options.format == "json":
        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        print("\n".join(report_lines(report)))
    return UnavailableError.exit_code if report["status"] == "error" else 0


def report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Formats the result of `check_environment`, grouped, and a summary."""
    for group, checks in groupby(report["checks"], key=itemgetter("group")):
        yield _TITLES.get(group, group)
        for check in checks:
            prefix = "" if group in _UNNAMED else f"{check['name']}: "
            yield f"  {check['status']:<8}{prefix}{check['message']}"
            if check["advice"]:
                yield f"          {check['advice']}"
    found = Counter(map(itemgetter("status"), report["checks"]))
    counts = [(found[status], status) for status in ("error", "warning")]
    words = [f"{n} {name}{'s' * (n != 1)}" for n, name in counts]
    yield f"{' and '.join(words)}, in {report['seconds']:.1f} s"
