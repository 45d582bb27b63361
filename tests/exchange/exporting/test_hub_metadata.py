"""The head of a card is what Hugging Face's hub reads.

Seen to fail: with scores of the comparison where the development text was scored; with
regions in the languages; with a value that is not quoted.
"""

import re

import pytest

from tests.exchange.exporting.test_model_card import ORIGIN, card

yaml = pytest.importorskip("yaml")

DEVELOPMENT = {"bleu": 31.256, "bleu_signature": "nrefs:1|v:2", "chrf": 55.0}
SCORED = {**ORIGIN, "data": {"dev": {"spec": "text:a"}}, "development": DEVELOPMENT}


def metadata(**changed):
    """Reads the head of a card."""
    empty, head, _ = card(**changed).split("---\n", 2)
    assert empty == ""
    return yaml.safe_load(head)


def test_what_is_known_is_in_it_and_nothing_else():
    head = metadata()
    (result,) = head.pop("model-index")[0]["results"]
    assert head == {
        **{"language": ["en", "fr"], "library_name": "t2t_jax"},
        "pipeline_tag": "translation",
        "tags": ["translation", "t2t_jax", "jax"],
        "metrics": ["bleu", "chrf"],
    }
    name = "test: 1,000 lines, beam 4, length penalty 0"
    assert result["dataset"] == {"type": "test", "name": name}
    (bleu,) = result["metrics"]
    assert bleu == {"type": "bleu", "name": "BLEU nrefs:1|case:mixed", "value": 36.9}


def test_a_quantized_export_has_the_scores_of_its_own_outputs():
    head = metadata(form="ctranslate2", quantization="int8", origin=SCORED)
    (result,) = head["model-index"][0]["results"]
    name = result["dataset"]["name"]
    assert re.fullmatch(r"test: [\d,]+ lines, beam \d+, length penalty 0", name)
    assert [one["value"] for one in result["metrics"]] == [36.9]


def test_a_bleu_of_few_lines_is_not_the_models_score():
    assert "model-index" in metadata(lines=100)
    assert "model-index" not in metadata(lines=99)


def test_what_is_given_is_in_it():
    head = metadata(languages=("pt_BR", "zh-Hans"), license="cc-by-4.0")
    assert head["language"] == ["pt", "zh"]
    assert head["license"] == "cc-by-4.0"


def test_the_hubs_own_library_reads_it():
    hub = pytest.importorskip("huggingface_hub")
    data = hub.ModelCard(card(origin=SCORED, license="mit")).data
    assert (data.license, data.pipeline_tag) == ("mit", "translation")
    bleu, _ = data.eval_results
    assert (bleu.metric_type, bleu.metric_value) == ("bleu", 31.26)
    assert bleu.dataset_name == "text:a"
