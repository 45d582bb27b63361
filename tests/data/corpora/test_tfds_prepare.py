import errno
import importlib
import logging
import os
import signal
import socket
import subprocess
import sys
from unittest import mock

import pytest

from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.tfds_prepare import import_tfds
from t2t_jax.errors import ConfigError, InputMissingError, OutputError, UserError
from tests.data.tfds_sets import pretended, write_wmt14

PAIRS = [("eins", "one"), ("zwei", "two")]
NAME = "tfds:wmt14_translate/de-en:train:en-de"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "sets"))
    return tmp_path / "sets"


@pytest.fixture
def downloads():
    """Stands for the method that downloads, which does nothing but what it is told."""
    wmt14 = importlib.import_module("tensorflow_datasets.translate.wmt14")
    with mock.patch.object(wmt14.Wmt14Translate, "_split_generators") as method:
        yield method


def test_what_is_missing_is_announced_prepared_and_read(home, capsys):
    said = []
    with pretended({"train": PAIRS}):
        corpus = open_corpus(NAME, log=said.append)
    assert sorted(corpus) == [("one", "eins"), ("two", "zwei")]
    (told,) = said
    assert f"wmt14_translate/de-en is not in {home}: TFDS downloads" in told
    assert capsys.readouterr().out == ""
    assert open_corpus(NAME) == corpus


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("de-en", "4 file(s) from data.statmt.org, www.statmt.org, 1,695 MB; "),
        ("fr-en", "6 file(s) from data.statmt.org, www.statmt.org, 1,695 MB, 2 of "),
    ],
)
def test_what_the_real_builder_downloads_is_reported_with_its_size(config, message):
    said = []
    builder = importlib.import_module("tensorflow_datasets").core.DatasetBuilder
    with mock.patch.object(builder, "download_and_prepare"):
        with pytest.raises(InputMissingError, match="has prepared the set elsewhere"):
            open_corpus(f"tfds:wmt14_translate/{config}:train", log=said.append)
    assert message in said[0]
    assert "pip install 't2t-jax[tfds-prepare]'" in said[0]


def test_a_failed_download_reports_why(downloads):
    downloads.side_effect = ConnectionError("no route to statmt.org")
    message = r"cannot prepare wmt14_translate/de-en \(ConnectionError: no route"
    with pytest.raises(InputMissingError, match=message):
        open_corpus(NAME, log=lambda text: None)


def test_a_builder_that_wants_tensorflow_names_the_extra(downloads):
    def import_it(*_):
        try:
            raise ModuleNotFoundError("No module named 'tensorflow'")
        except ImportError as error:
            raise RuntimeError("Failed to read") from error

    downloads.side_effect = import_it
    with pytest.raises(UserError, match=r"needs TensorFlow to.*\n.*tfds-prepare"):
        open_corpus(NAME, log=lambda text: None)


def test_a_full_disk_names_the_directory(downloads, home):
    downloads.side_effect = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match=r"No space left.*TFDS cannot write") as caught:
        open_corpus(NAME, log=lambda text: None)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(home))


def test_a_directory_that_cannot_be_written_is_named(downloads, home):
    downloads.side_effect = OSError(errno.EROFS, "Read-only file system")
    expected = rf"{home}: TFDS cannot write.*Read-only.*Set TFDS_DATA_DIR"
    with pytest.raises(OutputError, match=expected):
        open_corpus(NAME, log=lambda text: None)


def test_what_another_process_has_prepared_meanwhile_is_read(downloads, home):
    def lose_the_race(manager):
        if isinstance(manager, import_tfds().download.DownloadManager):
            write_wmt14(home, {"train": PAIRS})
            raise OSError(errno.ENOTEMPTY, "Directory not empty")

    downloads.side_effect = lose_the_race
    assert open_corpus(NAME, log=lambda text: None).num_pairs() == 2


@pytest.mark.parametrize("name", ["wmt14_translate/de-xx", "wmt99_translate/de-en"])
def test_an_unknown_set_or_config_is_reported(name, home):
    with pytest.raises(ConfigError, match=f"TFDS has no translation set {name}"):
        open_corpus(f"tfds:{name}:train", log=lambda text: None)
    with pytest.raises(ConfigError, match="configs are cs-en, de-en, fr-en"):
        open_corpus("tfds:wmt14_translate/xx:train", log=lambda text: None)
    assert not home.exists()


def _refuse_connections(monkeypatch):
    """Lets nobody be reached: the proxy is a port that is closed."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed.getsockname()[1]}")


def test_without_a_network_few_attempts_end_in_one_message(monkeypatch, caplog, capsys):
    _refuse_connections(monkeypatch)
    waits = []
    retry = importlib.import_module("urllib3.util.retry")
    monkeypatch.setattr(retry.time, "sleep", waits.append)
    message = r"^TFDS cannot download .*: www\.statmt\.org cannot be reached \(Proxy"
    with pytest.raises(InputMissingError, match=message):
        open_corpus(NAME, log=lambda text: None)
    assert sum(waits) < 5
    assert "Retrying" not in caplog.text + capsys.readouterr().err
    assert logging.getLogger("urllib3").level == logging.NOTSET


def test_a_signal_ends_a_download(home):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "t2t_jax.main", "--mode=prepare"]
        command += ["--config=wmt_en_de", f"--workdir={home.parent / 'run'}"]
        process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            env={**os.environ, "http_proxy": proxy},
            text=True,
        )
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=20)
    assert process.returncode == 75
    assert errors.endswith("error: Stopped by SIGTERM. Rerun the same command.\n"), (
        errors
    )
