"""What the program can be asked to do, and how each of it is run."""

from __future__ import annotations

MODES = {
    "train": "trains, or resumes what --workdir holds",
    "prepare": "reads, filters and encodes the text of a run; trains nothing",
    "translate": "translates stdin (or --input) to stdout (or --output)",
    "evaluate": "scores --source against --reference, one JSON object on stdout",
    "score": "prints the log-probability of each pair of --source and --reference",
    "average": "writes the mean of several checkpoints to the directory --to",
    "export": "writes the model for others to use, as --to says, into --output",
    "recover": "restores config.json and vocab.model of a run from a checkpoint",
    "describe": "says what a configuration is and costs; trains nothing",
    "attention": "draws who looks at whom in a --text, into the directory --to",
    "show_batch": "prints the text that a training step has read, or will read",
    "figures": "draws equation 3 and the positional encoding into --to",
}
"""What the program can do, and what each of it is."""

TOGETHER = ("train", "translate", "evaluate")
"""The modes that several processes do together."""

READERS = ("translate", "evaluate", "score")
"""The modes that leave a run as it is, so that a signal may end them at any time."""

WITHOUT_RUN = ("recover", "figures")
"""The modes that do not read the configuration of the run in `--workdir`."""
