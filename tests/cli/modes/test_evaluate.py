"""What `--mode=evaluate` refuses, before JAX is imported and anything is decoded."""

import sys

import pytest

from tests.docs.commands import run

ARGV = ["--mode=evaluate", "--workdir=run", "--source=en", "--reference=de"]
LINES = {"en": 23, "de": 23, "long": 1201, "short": 7, "empty": 0}


@pytest.mark.parametrize(
    ("flags", "code", "messages"),
    [
        (
            "--source=long --baseline=short",
            65,
            ["has 1,201, de has 23.", "short has 7"],
        ),
        ("--reference=empty", 65, ["--reference=empty must have lines", "en has 23"]),
        ("--hypotheses=no/where", 73, ["--hypotheses=no/where must be"]),
        ("--robustness --protocol=tokenized", 64, ["mutually exclusive"]),
        ("--protocol=vaswani2017", 64, ["pip install 't2t-jax[paper]'"]),
    ],
)
def test_mistakes_are_named_before_jax_is_imported(place, flags, code, messages):
    for name, count in LINES.items():
        (place / name).write_text("a\n" * count)
    program = (
        "import sys\n"
        "sys.modules['sacremoses'] = None\n"
        "from t2t_jax.main import main\n"
        f"code = main({[*ARGV, *flags.split()]!r})\n"
        "print(code, 'jax' in sys.modules)\n"
    )
    done = run([sys.executable, "-c", program], place)
    assert done.stdout == f"{code} False\n"
    assert all(message in done.stderr for message in messages)
    assert done.stderr.count("error:") == len(messages)
