"""Programs in `benchmarks/` import one another as scripts do, from their own folder."""

import sys

from tests.integration.tiny import ROOT

sys.path.append(str(ROOT / "benchmarks"))
