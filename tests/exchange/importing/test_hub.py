"""Models of Hugging Face's hub, here of a local cache.

Seen to fail: without the fetch of `pytorch_model.bin` where there is nothing else;
without the check of the name.
"""

import json
from fnmatch import fnmatch

import pytest

from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.exchange.importing import importer as hub
from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.exchange.importing.importer import write_imported
from tests.exchange.hf_directory import write_directory

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the hub with one model, out of reach of the network."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    model = tmp_path / "cache" / "models--some--model"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text(COMMIT)
    write_directory(model / "snapshots" / COMMIT)
    return tmp_path / "cache"


def test_it_is_imported_by_its_name(cache, tmp_path):
    options = ImportOptions()
    write_imported("hf://some/model@main", tmp_path / "to", toolkit="", options=options)
    made = json.loads((tmp_path / "to" / "model.json").read_text())
    assert "model.safetensors" in str(made)


def test_what_is_not_cached_is_one_error(cache):
    with pytest.raises(InputMissingError, match=r"hf://some/other cannot be fetched"):
        hub.resolve_hub("hf://some/other")


def test_pickles_are_fetched_only_if_there_is_nothing_else(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    has_pickles = []

    def fetch(name, revision, allowed):
        names = "pytorch_model.bin", "pytorch_model-00001-of-00002.bin"
        fetched = [any(fnmatch(name, one) for one in allowed) for name in names]
        assert len({*fetched}) == 1
        has_pickles.append(fetched[0])
        return tmp_path

    monkeypatch.setattr(hub, "_fetch", fetch)
    assert hub.resolve_hub("hf://some/model@v1.0") == tmp_path
    assert has_pickles == [False, True]
    (tmp_path / "model.safetensors").touch()
    hub.resolve_hub("hf://some/model")
    assert has_pickles == [False, True, False]


def test_what_training_left_is_not_fetched(tmp_path, monkeypatch):
    module = pytest.importorskip("huggingface_hub")
    of_model = {"config.json", "pytorch_model.bin", "training_args.bin", "bpecodes"}
    left, fetched = {"optimizer.pt", "checkpoint-5/model.safetensors"}, set()

    def download(name, *, revision, allow_patterns, ignore_patterns):
        for file in of_model | left:
            allowed, ignored = (
                any(fnmatch(file, one) for one in patterns)
                for patterns in (allow_patterns, ignore_patterns)
            )
            fetched.update({file} if allowed and not ignored else ())
        return str(tmp_path / "nothing yet")

    monkeypatch.setattr(module, "snapshot_download", download)
    hub.resolve_hub("hf://some/model")
    assert fetched == of_model


@pytest.mark.parametrize(
    "path",
    ["hf://model", "hf://a/b/c", "hf://a/../b", "hf://a/b@../x", "hf://a b/c", "hf://"],
)
def test_other_names_are_refused(path):
    with pytest.raises(UserError, match=r"must be hf://ORGANIZATION/NAME"):
        hub.resolve_hub(path)
