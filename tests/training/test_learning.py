from t2t_jax.training.metrics import summarise
from tests.training.copy_task import Trainer, batch_of, pair_of, sentences


def test_a_copy_task_is_learned_to_99_percent():
    trainer = Trainer(1, rows=32, dropout=0.0, peak=5e-3, d_model=32)
    for number in range(600):
        trainer.step(batch_of([pair_of(s) for s in sentences(100 + number, 32)]))
    held_out = batch_of([pair_of(s) for s in sentences(1, 64)])
    figures = summarise(trainer.sums(trainer.state.params, held_out))
    assert figures["accuracy"] > 0.99
