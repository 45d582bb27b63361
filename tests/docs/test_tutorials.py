"""Each tutorial is run from its own text, with smaller models and fewer steps.

Seen to fail: a wrong flag in a page, an output line that is not printed, and a
replacement whose text is gone from its block.
"""

import pytest

from tests.docs import pages
from tests.integration.tiny import ROOT

TUTORIALS = sorted(
    str(path.relative_to(ROOT)) for path in ROOT.glob("docs/tutorials/[1-9]_*.md")
)


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_runs_and_prints_what_it_shows(page, tmp_path):
    pages.run(page, tmp_path)
