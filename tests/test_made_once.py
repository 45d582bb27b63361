"""Seen to fail: without the lock, and without the removal of what a failure left."""

import time
from concurrent.futures import ThreadPoolExecutor

from tests.made_once import made_once


def test_of_several_at_once_one_makes_it_and_all_have_it(tmp_path):
    made = []

    def make(directory):
        made.append(directory)
        time.sleep(0.1)
        (directory / "file").write_text("text")

    def text_of(_):
        return (made_once(tmp_path / "one", make) / "file").read_text()

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(text_of, range(3))) == ["text"] * 3
    assert made == [tmp_path / "one"]


def test_workers_have_the_directory_of_the_run_in_common(
    shared_directory, tmp_path_factory, request
):
    own = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        assert own.parent == shared_directory
        assert own.name.startswith("popen-gw")
    else:
        assert own == shared_directory
