"""What a run that goes on refuses to go on with.

How it goes on is said in tests/faults/test_resume_exact.py and test_signals.py.
"""

import shutil

from tests.integration import tiny


def test_a_change_under_a_run_is_refused_with_both_values(one_step, tmp_path):
    copy = shutil.copytree(one_step, tmp_path / "run")
    refused = tiny.run(f"--workdir={copy}", "--config.model.d_ff=64")
    assert refused.returncode == 78
    assert b"model.d_ff was 32" in refused.stderr
    assert b"64" in refused.stderr


def test_changed_text_under_a_run_is_refused(tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    for path in (source, target):
        path.write_text("".join(f"a sentence {n}\n" for n in range(99)))
    text = {"data__train": f"text:{source},{target}", "vocabulary__size": 40}
    text["evaluation__every_steps"] = 0
    run = tmp_path / "run"
    assert tiny.run(*tiny.arguments(run, steps=1, **text)).returncode == 0
    records = ("config.json", "data.json", "fingerprints.json", "vocab.model")
    before = {name: (run / name).read_bytes() for name in records}
    target.write_text(target.read_text().replace("98", "97"))
    for mode in ("train", "prepare"):
        refused = tiny.run(*tiny.arguments(run, steps=2, **text), f"--mode={mode}")
        assert refused.returncode == 65, refused.stderr.decode()
        assert b"other content of: train" in refused.stderr
        # What was refused has left the run as it was.
        assert before == {name: (run / name).read_bytes() for name in records}


def test_a_run_without_a_checkpoint_keeps_to_its_text_too(one_step, tmp_path):
    run = shutil.copytree(one_step, tmp_path / "run")
    shutil.rmtree(run / "checkpoints")
    other = {"data__train": "phrasebook:train:301"}
    refused = tiny.run(*tiny.arguments(run, steps=2, **other))
    assert refused.returncode == 65, refused.stderr.decode()
    assert b"other content of: train" in refused.stderr


def test_a_run_of_before_there_were_fingerprints_gets_its_own(one_step, tmp_path):
    run = shutil.copytree(one_step, tmp_path / "run")
    made = (run / "fingerprints.json").read_bytes()
    (run / "fingerprints.json").unlink()
    other = {"data__train": "phrasebook:train:301"}
    refused = tiny.run(*tiny.arguments(run, steps=2, **other))
    assert refused.returncode == 65, refused.stderr.decode()
    assert (run / "fingerprints.json").read_bytes() == made
