from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.corpora.write_corpus import main


def test_what_is_written_reads_as_the_corpus_it_came_from(tmp_path):
    source, target = tmp_path / "en", tmp_path / "de"
    assert main(["phrasebook:test:7", str(source), str(target)]) == 0
    again = list(open_corpus(f"text:{source},{target}"))
    assert again == list(open_corpus("phrasebook:test:7"))
