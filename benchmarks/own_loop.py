"""Times the loop of docs/how_to/own_loop.md beside the program's, in turns.

    python benchmarks/own_loop.py --turns=48

Both are in one process and train the same model on the same batches. The program's
loop is its compiled steps and its meter; the page's calls the jitted step.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import jax
import optax

import t2t_jax
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.functional.schedule import inverse_square_root
from t2t_jax.training.compiled_step import BatchLayout, StepCompiler
from t2t_jax.training.progress_and_patience import RunProgress
from t2t_jax.training.state import state_shapes
from t2t_jax.training.step_meter import StepMeter

SHAPE, STEPS = (16, 64), 5
SIZES = {"num_layers": 2, "d_model": 128, "d_ff": 512, "num_heads": 4}

pairs = list(open_corpus("phrasebook:train:4000"))
vocabulary = t2t_jax.Vocabulary.train((line for pair in pairs for line in pair), 2_000)
config = t2t_jax.TransformerConfig(vocab_size=vocabulary.size, d_k=32, d_v=32, **SIZES)
optimizer = optax.adam(lambda n: inverse_square_root(n + 1, 128, warmup_steps=400))
model, mesh = (t2t_jax.Transformer(config), optimizer), t2t_jax.make_mesh()


def make_loop(*, as_page: bool, cache_dir: str) -> Callable[[], tuple[float, float]]:
    """Returns what makes some steps, and tells the seconds and those of CPUs."""
    rows, length = SHAPE
    batches = t2t_jax.batches(
        pairs,
        vocabulary,
        mesh=mesh,
        tokens_per_batch=rows * length,
        row_length=length,
        cache_dir=cache_dir,
    )
    state, key = t2t_jax.init_state(*model, 0, mesh=mesh), jax.random.key(0)
    step = t2t_jax.make_train_step(*model, mesh=mesh)
    steps = StepCompiler(
        lambda _: step,
        state_shapes(*model),
        layout=BatchLayout(planned=[SHAPE], mesh=mesh),
        key=key,
        log=lambda _: None,
        about="",
    )
    if not as_page:
        steps.compile_for(steps.layout.shapes[0])
    meter, made = StepMeter(RunProgress(), skip=lambda _: None), 0

    def train() -> tuple[float, float]:
        nonlocal state, made
        began = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            made += 1
            if as_page:
                state, output = step(state, next(batches), key)
            else:
                position, batch = next(batches._stream)
                state, output = steps(state, batch)
                meter.add(output, step=made, position=position)
        meter.drain()
        jax.block_until_ready(state)
        return time.perf_counter() - began[0], time.process_time() - began[1]

    train()  # compiles
    return train


def main() -> None:
    """Prints how fast the page's loop is, the program's being 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=48)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as cache:
        page, own = (make_loop(as_page=one, cache_dir=cache) for one in (True, False))
        found = []
        for turn in range(turns):
            order = (page, own) if turn % 2 else (own, page)
            took = {loop: loop() for loop in order}
            found.append([b / a for a, b in zip(took[page], took[own], strict=True)])
    for name, ratios in zip(
        ("time", "CPU time"), zip(*found, strict=True), strict=True
    ):
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"{name}: {middle:.3f}, quartiles {low:.3f} and {high:.3f}")


if __name__ == "__main__":
    main()
