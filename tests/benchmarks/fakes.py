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
        return self._calls

    def surroundings(self):
        return os.getpid(), SEEN_ON_IMPORT, len(os.sched_getaffinity(0))

    def chatter(self):
        os.write(1, b"a library prints\n")
        print("so does Python", flush=True)

    def nap(self):
        began = time.monotonic()
        time.sleep(0.02)
        return began, time.monotonic()

    def die(self):
        os._exit(7)
