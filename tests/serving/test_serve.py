"""The real command: models, flags, signals, and clients of LibreTranslate."""

import json
import re
import shutil
import signal
import threading
import time
import urllib.request
from contextlib import suppress

import numpy as np
import pytest

import t2t_jax
from t2t_jax.main import main
from tests.docs.commands import run
from tests.integration.tiny import ROOT
from tests.serving.running import serving
from tests.waiting import wait_for

pytest.importorskip("uvicorn")
LINES = ["The old teacher reads a book.", "A dog barks.", "Two men sleep."]


@pytest.fixture(scope="module")
def server(tiny_run):
    pairs = f"en-de={tiny_run},de-en={tiny_run}"
    with serving(f"--workdir={pairs}", "--config.decoding.beam_size=2") as found:
        yield found


def test_translations_are_those_of_the_model(server, tiny_run):
    model = t2t_jax.load(tiny_run)
    fields = {"q": LINES, "source": "en", "target": "de", "alternatives": 1}
    details = dict.fromkeys(("attention", "alignments", "token_scores"), True)
    status, answer = server.post("/translate", {**fields, **details})
    assert status == 200
    assert answer["translatedText"] == model.translate(LINES)
    wanted = model.translations(LINES, n_best=2, token_scores=True, attention=True)
    for (segment,), translation in zip(answer["segments"], wanted, strict=True):
        best, own = segment["hypotheses"][0], translation.hypotheses[0]
        assert tuple(best["tokens"]) == own.tokens
        assert segment["source_tokens"] == list(translation.source_tokens)
        assert len(best["token_log_probabilities"]) == len(best["tokens"])
        assert {len(pair) for pair in best["alignment"]} <= {2}
        assert np.asarray(best["attention"]) == pytest.approx(
            own.attention_TxS, abs=1e-3
        )


def test_libretranslatepy(server):
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(server.url)
    _, answer = server.post(
        "/translate", {"q": LINES[0], "source": "en", "target": "de"}
    )
    assert client.translate(LINES[0], "en", "de") == answer["translatedText"]
    assert [one["code"] for one in client.languages()] == ["en", "de"]
    assert client.detect("The dog is not in the house")[0]["language"] == "en"


PAGE = (ROOT / "docs/how_to/serving.md").read_text(encoding="utf-8")
CURLS = [
    command
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for command in re.findall(r"^curl (?:.*\\\n)*.*$", block, re.MULTILINE)
]


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("command", CURLS)
def test_the_commands_of_the_page(server, command):
    assert len(CURLS) == 7
    command = command.replace("http://127.0.0.1:5000", server.url)
    done = run(["bash", "-c", command], ROOT)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines
    assert not any("error" in line for line in lines)


def test_a_signal_answers_what_is_under_way_and_ends_with_0(tiny_run):
    with serving(f"--workdir={tiny_run}") as server:
        found = []
        fields = {"q": LINES * 12, "source": "en", "target": "de"}
        asking = threading.Thread(
            target=lambda: found.append(server.post("/translate", fields))
        )
        asking.start()
        text = ""
        while "requests_in_progress 2" not in text:  # this one and that of the thread
            with urllib.request.urlopen(f"{server.url}/metrics") as response:
                text = response.read().decode()
        server.process.send_signal(signal.SIGINT)
        asking.join(120)
        assert found[0][0] == 200
        assert len(found[0][1]["translatedText"]) == 36
        assert server.process.wait(240) == 0
        assert "Traceback" not in "".join(server.lines)


def test_a_second_signal_ends_at_once(tiny_run):
    with serving(f"--workdir={tiny_run}") as server:
        fields = {"q": LINES * 600, "source": "en", "target": "de"}

        def ask_in_vain():
            with suppress(OSError):
                server.post("/translate", fields)

        threading.Thread(target=ask_in_vain, daemon=True).start()
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "SIGTERM" in "".join(server.lines))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 75


def test_two_servers_on_one_port(server, tiny_run, capsys, own_signals):
    port = server.url.rpartition(":")[2]
    assert main(["serve", f"--workdir={tiny_run}", f"--port={port}"]) == 69
    assert f"port {port} of 127.0.0.1" in capsys.readouterr().err
