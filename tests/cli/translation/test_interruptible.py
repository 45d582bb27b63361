"""Work in a thread that can be given up.

Seen to fail: with a thread that is no daemon, and where what is raised stays in it.
"""

import signal
import subprocess
import sys
import threading
import time

import pytest

from t2t_jax.cli.translation.interruptible import InterruptibleWorker
from t2t_jax.errors import DataError
from t2t_jax.training.health.stop_signals import raise_on_signals


def test_what_is_done_comes_back_and_so_does_what_goes_wrong():
    def fail():
        raise DataError("damaged")

    background = InterruptibleWorker()
    assert background.run(lambda: 7) == 7
    with pytest.raises(DataError, match="damaged"):
        background.run(fail)
    assert not background.is_busy
    assert background.run(threading.get_ident) != threading.get_ident()
    assert background.close(seconds=20)


def test_a_signal_gives_up_what_goes_on_unheard():
    release, done = threading.Event(), []

    def work():
        main = threading.main_thread().ident
        signal.pthread_kill(main, signal.SIGINT)
        release.wait(20)
        done.append("first")

    background = InterruptibleWorker()
    with raise_on_signals():
        with pytest.raises(KeyboardInterrupt, match="SIGINT"):
            background.run(work)
        assert background.is_busy
        assert not background.close(seconds=0.05)
        release.set()
    assert background.close(seconds=20)
    assert not background.is_busy
    assert done == ["first"]


def test_one_thing_is_done_after_the_other():
    background, seen = InterruptibleWorker(), []

    def slow():
        time.sleep(0.05)
        seen.append("slow")

    other = threading.Thread(target=background.run, args=[slow])
    other.start()
    while not other.is_alive():
        time.sleep(0.001)
    time.sleep(0.01)
    background.run(lambda: seen.append("next"))
    other.join()
    assert seen == ["slow", "next"]
    assert background.close(seconds=20)


def test_what_nobody_waits_for_does_not_keep_the_process():
    code = (
        "import threading, time\n"
        "from t2t_jax.cli.translation.interruptible import InterruptibleWorker\n"
        "wait = threading.Event()\n"
        "begun = lambda: (wait.set(), time.sleep(60))\n"
        "do = InterruptibleWorker().run\n"
        "waiter = threading.Thread(target=do, args=[begun], daemon=True)\n"
        "waiter.start()\n"
        "wait.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=20, check=False)
    assert done.returncode == 0
