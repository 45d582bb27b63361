import pytest

from t2t_jax.data.phrasebook.order import Choices
from t2t_jax.data.phrasebook.styles import contracted, typed


@pytest.mark.parametrize(
    ("proper", "short"),
    [
        ("I do not know.", "I don't know."),
        ("Do not open it!", "Don't open it!"),
        ("He cannot swim.", "He can't swim."),
        ("We will not come.", "We won't come."),
        ("I am not tired.", "I'm not tired."),
        ("She is not tired.", "She isn't tired."),
        ("They are reading.", "They're reading."),
        ("There is a dog.", "There's a dog."),
        ("You would like tea.", "You'd like tea."),
        ("Who is it?", "Who's it?"),
        ("The dog is here.", "The dog is here."),
    ],
)
def test_contractions_are_those_that_people_type(proper, short):
    assert contracted(proper) == short


def test_few_sentences_are_typed_carelessly_and_their_german_is_not():
    pair = ("I do not know.", "Ich weiß nicht.")
    seen = [typed(pair, Choices(str(number))) for number in range(2_000)]
    careless = [english for english, _ in seen if not english.endswith(".")]
    assert set(seen) == {
        pair,
        ("I don't know.", "Ich weiß nicht."),
        ("I do not know", "Ich weiß nicht"),
        ("I don't know", "Ich weiß nicht"),
        ("i do not know", "Ich weiß nicht"),
        ("i don't know", "Ich weiß nicht"),
    }
    assert 0.05 < len(careless) / len(seen) < 0.12
