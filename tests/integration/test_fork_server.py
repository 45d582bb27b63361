"""A fork gives what a start gives. Seen to fail: with exit code 0 for every fork."""

import pytest

from tests.integration import tiny


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--stpes=3"],
        ["--config.stpes=3"],
        ["--mode=translate", "--workdir=no/such"],
    ],
    ids=" ".join,
)
def test_a_fork_ends_as_a_start_of_its_own(argv):
    one, other = (tiny.run(*argv, stdin=b"Two men.\n", fresh=k) for k in (False, True))
    assert one.returncode == other.returncode
    assert (one.stdout, one.stderr) == (other.stdout, other.stderr)
