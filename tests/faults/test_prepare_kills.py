"""Preparing text that is killed, at whatever moment, or done twice at once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from tests.faults import running
from tests.integration import tiny
from tests.waiting import is_alive, wait_for

PAIRS = 50_000

PROGRAM = """
import sys
from t2t_jax import main
from t2t_jax.data.token_cache import shards

if __name__ == "__main__":
    shards.SHARD_PAIRS = 2_000
    sys.exit(main.main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Writes pairs with repetitions, a vocabulary, and the program."""
    place = tmp_path_factory.mktemp("corpus")
    chance = random.Random(7)
    words = ["".join(chance.choices("aeioubdglmnrst", k=5)) for _ in range(500)]
    sizes = [chance.randrange(1, 13) for _ in range(PAIRS)]
    lines = [" ".join(chance.choices(words, k=size)) for size in sizes]
    lines[25_000:30_000] = lines[:5_000]
    for side in ("en", "de"):
        text = "".join(f"{line}\n" for line in lines)
        (place / f"train.{side}").write_text(text.replace("a", side[0]))
    vocabulary = Vocabulary.train(lines[:2000], 200)
    VocabularyPair(vocabulary, vocabulary).save(place)
    (place / "program.py").write_text(PROGRAM)
    return place


class Preparing:
    """A prepare of the corpus, as a process."""

    def __init__(self, corpus: Path, home: Path, run: str = "run"):
        keys = {
            "data.train": f"text:{corpus}/train.en,{corpus}/train.de",
            "data.dev": "phrasebook:dev:7",
            "data.drop_duplicates": True,
            "data.workers": 2,
            "data.cache_dir": home / "caches",
            "vocabulary.file": corpus / "vocab.model",
            "vocabulary.size": 200,
        }
        self.caches = home / "caches"
        argv = [f"--config.{key}={value}" for key, value in keys.items()]
        argv += ["--mode=prepare", f"--workdir={home / run}"]
        self.process = subprocess.Popen(
            [sys.executable, corpus / "program.py", *argv],
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(tiny.ROOT)},
        )

    def finish(self) -> str:
        errors = self.process.communicate(timeout=240)[1].decode()
        assert self.process.returncode == 0, errors
        return errors

    def shards(self) -> int:
        return len(list(self.caches.glob("*.building/shard-?????")))

    def wait_for_shards(self, count: int) -> None:
        running.wait_for(lambda: self.shards() >= count, self.process, seconds=120)

    def children(self) -> list[int]:
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(child) for task in tasks for child in task.read_text().split()]


def content(caches: Path) -> dict[str, str]:
    """Returns the hash of every file of the caches, of which none is half made."""
    assert not list(caches.glob("*.building"))
    return running.hashes(caches)


def require_gone(processes: list[int]) -> None:
    """Waits for processes to end."""
    wait_for(lambda: not any(map(is_alive, processes)))


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    preparing = Preparing(corpus, tmp_path_factory.mktemp("undisturbed"))
    errors = preparing.finish()
    assert "50,000 pairs read" in errors
    assert "Preparing text:" in errors
    return content(preparing.caches)


def test_killed_twice_it_ends_as_if_it_had_not_been(corpus, undisturbed, tmp_path):
    moments = random.Random()  # another moment each time
    whole = 0
    for _ in range(2):
        preparing = Preparing(corpus, tmp_path)
        preparing.wait_for_shards(whole + 1)
        time.sleep(moments.uniform(0, 0.2))
        children = preparing.children()
        preparing.process.kill()
        assert preparing.process.wait(timeout=240) == -signal.SIGKILL
        assert len(children) >= 2
        require_gone(children)
        preparing.process.communicate()
        whole = preparing.shards()
    errors = Preparing(corpus, tmp_path).finish()
    assert f"Resuming after {min(PAIRS, 2_000 * whole):,} encoded pairs" in errors
    assert content(tmp_path / "caches") == undisturbed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_all_its_processes(corpus, undisturbed, tmp_path, number):
    preparing = Preparing(corpus, tmp_path)
    preparing.wait_for_shards(1)
    children = preparing.children()
    if number == signal.SIGINT:  # from a terminal it goes to all of them
        os.killpg(preparing.process.pid, number)
    else:
        preparing.process.send_signal(number)
    errors = preparing.process.communicate(timeout=240)[1].decode()
    assert preparing.process.returncode == 75, errors
    assert "Rerun the same command" in errors
    assert "Traceback" not in errors
    require_gone(children)
    assert "Resuming after" in Preparing(corpus, tmp_path).finish()
    assert content(tmp_path / "caches") == undisturbed


def test_two_at_once_succeed_and_make_one_cache(corpus, undisturbed, tmp_path):
    both = [Preparing(corpus, tmp_path, run) for run in ("one", "other")]
    errors = "".join(preparing.finish() for preparing in both)
    assert errors.count("Preparing text:") <= 3  # train once, dev once or twice
    assert content(tmp_path / "caches") == undisturbed
