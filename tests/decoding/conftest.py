"""What turns our weights into those of peers is in `benchmarks/`."""

import sys

from tests.integration.tiny import ROOT

sys.path.append(str(ROOT / "benchmarks"))
