"""What `test_contest.py` has made in processes of their own."""

import os
import time

SEEN_ON_IMPORT = os.environ.get("T2T_JAX_TEST_SEEN", "")


class Runner:
    """Does nothing that takes long."""

    def __init__(self, work):
        if work.rows == 13:
            raise ValueError("13 rows cannot be made")
        self._calls = 0

    def calls(self, more):
        self._calls += more
        print("a library prints", flush=True)
        return self._calls, os.getpid(), SEEN_ON_IMPORT

    def nap(self):
        began = time.monotonic()
        time.sleep(0.02)
        return began, time.monotonic()

    def die(self):
        os._exit(7)
