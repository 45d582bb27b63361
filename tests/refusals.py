"""What a command line is refused for."""

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.errors import UserError


def problems_of(*argv, error=UserError):
    with pytest.raises(error) as info:
        parse_argv(argv)
    return "\n".join(info.value.problems)
