"""Which tier a test belongs to: one table, by folder, file or test.

| tier | command | time on two idle cores |
|---|---|---|
| quick | `bash launch/test.sh --quick` | under 2 minutes |
| default | `bash launch/test.sh` | under 6 minutes |
| full | `bash launch/test.sh --full` | what continuous integration runs |
| soak | `bash launch/test.sh --soak` | half an hour or more |

Each tier contains those before it. The longest prefix of a test's id decides. Only
`soak` is a marker in the test files: it stands beside the parameters that it repeats.
"""

from collections.abc import Iterable
from typing import Any

import pytest

QUICK, DEFAULT, FULL = "quick", "default", "full"

TIERS = {
    "": QUICK,
    # Doctests compile small programs.
    "t2t_jax/": DEFAULT,
    "t2t_jax/cli/": QUICK,
    "t2t_jax/data/": QUICK,
    # Compiles models, searches and steps.
    "tests/decoding/": DEFAULT,
    "tests/decoding/test_beam_search_equalities.py": FULL,
    "tests/decoding/test_ensemble.py::test_every_member": FULL,
    "tests/decoding/engine/test_device_rows.py": FULL,
    "tests/decoding/scoring/test_teacher_forcing.py": FULL,
    "tests/decoding/scoring/test_rescorer.py": FULL,
    "tests/decoding/search/test_beam_search.py": QUICK,
    "tests/decoding/search/test_constraint.py::test_an_output_cut": FULL,
    "tests/decoding/search/test_constraint.py::test_rows_keep": FULL,
    "tests/decoding/search/test_term_constraint.py::test_with_enough": FULL,
    "tests/decoding/search/test_term_constraint.py::test_500": FULL,
    "tests/decoding/search/test_tree_constraint.py::test_with_enough": FULL,
    "tests/decoding/search/test_tree_constraint.py::test_every_output": FULL,
    "tests/decoding/search/test_length_penalty.py": QUICK,
    "tests/decoding/engine/test_run_batches.py": FULL,
    "tests/decoding/engine/test_run_batches.py::test_results": QUICK,
    "tests/decoding/engine/test_run_batches.py::test_every_later": QUICK,
    "tests/decoding/engine/test_run_batches.py::test_who": QUICK,
    "tests/decoding/text/test_sentences.py": QUICK,
    "tests/decoding/text/test_sentences.py::test_a_megabyte": DEFAULT,
    "tests/decoding/text/test_translator.py::test_every_line": QUICK,
    "tests/run/description/test_costs.py": DEFAULT,
    "tests/run/description/test_topology_costs.py": FULL,
    "tests/run/description/test_topology_costs.py::test_advice": QUICK,
    "tests/run/description/test_costs.py::test_two_passes": FULL,
    "tests/run/description/test_summary.py": FULL,
    "tests/architecture/test_public_api.py::test_a_strict": DEFAULT,
    "tests/docs/": FULL,
    "tests/docs/test_generated.py": QUICK,
    "tests/docs/test_pages.py::test_what": QUICK,
    "tests/evaluation/bracketing/test_parity_evalb.py": DEFAULT,
    "tests/exchange/": DEFAULT,
    "tests/exchange/exporting/test_exporter.py": FULL,
    "tests/exchange/exporting/test_exporter.py::test_a_key_that": DEFAULT,
    "tests/exchange/exporting/test_forbidden_tokens.py": FULL,
    "tests/exchange/exporting/test_model_card.py": QUICK,
    "tests/exchange/exporting/test_stablehlo.py": FULL,
    "tests/exchange/exporting/test_verification.py": QUICK,
    "tests/exchange/importing/test_hub.py": QUICK,
    "tests/exchange/importing/test_importer.py": QUICK,
    "tests/exchange/importing/test_m2m_100.py::test_a_language_is": FULL,
    "tests/exchange/importing/test_marian.py": QUICK,
    "tests/exchange/importing/test_marian_search.py": FULL,
    "tests/exchange/readers/": QUICK,
    "tests/exchange/test_nnx.py::test_a_changed_model": FULL,
    "tests/exchange/test_nnx.py::test_a_recurrent_model": FULL,
    "tests/exchange/test_nnx.py::test_gradients": FULL,
    "tests/exchange/test_parity_m2m_100.py": FULL,
    "tests/exchange/test_parity_transformers.py": FULL,
    "tests/functional/test_chunked_loss.py": DEFAULT,
    "tests/functional/test_consistency_loss.py": DEFAULT,
    "tests/functional/test_dropout.py": DEFAULT,
    "tests/run/inference/": DEFAULT,
    "tests/model/": DEFAULT,
    "tests/model/test_config.py": QUICK,
    "tests/model/test_counting.py": QUICK,
    "tests/model/test_counting.py::test_the_compiler": DEFAULT,
    "tests/model/test_attention_kernels.py": QUICK,
    "tests/reference/": DEFAULT,
    "tests/reference/test_model_keys.py::test_each_key_alone": FULL,
    "tests/report/test_browser.py": FULL,
    "tests/run/test_device_choices.py": DEFAULT,
    "tests/run/test_prepared_data.py": DEFAULT,
    "tests/run/test_inspect_batch.py": DEFAULT,
    "tests/devices/test_huge_pages.py": DEFAULT,
    "tests/devices/distributed/test_signals.py": DEFAULT,
    "tests/devices/distributed/test_gather.py::test_two_processes": DEFAULT,
    "tests/devices/distributed/test_gather.py::test_devices_that": DEFAULT,
    "tests/devices/sharding/test_rules.py::test_no_rule": DEFAULT,
    "tests/checkpointing/test_own_state.py::test_of_two": DEFAULT,
    "tests/cli/translation/test_sharded_job.py::test_a_process_with": DEFAULT,
    "tests/data/batching/test_modifiers.py::test_two_processes": DEFAULT,
    "tests/data/token_cache/test_token_cache.py::test_whatever": DEFAULT,
    "tests/evaluation/test_attention_maps.py": DEFAULT,
    "tests/evaluation/test_significance.py::test_the_interval": DEFAULT,
    "tests/test_docs.py": DEFAULT,
    "tests/test_startup.py": DEFAULT,
    "tests/test_readme.py": DEFAULT,
    "tests/test_readme.py::test_the_commands": FULL,
    "tests/test_readme.py::test_the_fine_tuning": FULL,
    "tests/training/test_accumulation.py": FULL,
    "tests/training/test_compiled_step.py": DEFAULT,
    "tests/training/test_consistency.py": FULL,
    "tests/training/test_consistency.py::test_keys": QUICK,
    "tests/training/test_consistency.py::test_r_drop_of": QUICK,
    "tests/training/test_lowered_step.py": DEFAULT,
    "tests/training/test_optimizer.py::test_adafactor": DEFAULT,
    "tests/training/test_optimizer.py::test_five_steps": DEFAULT,
    "tests/training/test_state.py": DEFAULT,
    "tests/training/test_step.py": DEFAULT,
    "tests/training/test_step.py::test_guard": FULL,
    "tests/training/test_step.py::test_optimizer": FULL,
    "tests/training/test_stopping.py": DEFAULT,
    "tests/training/test_stopping.py::test_a_step": FULL,
    "tests/training/test_stopping.py::test_a_pause": FULL,
    "tests/training/test_stopping.py::test_0": FULL,
    "tests/training/reporting/test_profiler.py": DEFAULT,
    # Second ways to the same result, and learning again.
    "tests/decoding/test_parity_ctranslate2.py": FULL,
    "tests/decoding/test_transformer_search.py": FULL,
    "tests/model/rnn/test_rnn.py": FULL,
    "tests/model/test_architectures.py": FULL,
    "tests/model/test_blocks.py": FULL,
    "tests/model/test_blocks.py::test_a_mesh_changes_no_gradient[rms-pre": DEFAULT,
    "tests/model/test_fused_attention.py": FULL,
    "tests/model/test_compute_dtype.py": FULL,
    "tests/model/test_remat.py": FULL,
    "tests/devices/test_compilation_cache.py": FULL,
    # One of the real command, the page in a browser.
    "tests/serving/test_serve.py": FULL,
    "tests/serving/test_page.py": FULL,
    "tests/serving/test_fuzz.py": FULL,
    "tests/serving/test_fuzz.py::test_a_content_type": DEFAULT,
    "tests/serving/test_malformed.py": DEFAULT,
    "tests/serving/test_malformed.py::test_slow_headers": FULL,
    # Whole programs: processes, scripts, benchmarks, faults.
    "tests/benchmarks/": FULL,
    "tests/launch/": FULL,
    "tests/launch/test_dockerfile.py": QUICK,
    "tests/integration/": FULL,
    "tests/integration/test_command_line.py": DEFAULT,
    "tests/integration/test_parsing.py": DEFAULT,
    "tests/integration/test_loading.py::test_a_loaded_model": DEFAULT,
    "tests/integration/test_smoke.py": QUICK,
    "tests/faults/": FULL,
    "tools/": FULL,
    # One of each kind of fault, but for those that take a minute: kills, lost processes
    # and full disks, whose parts tests/run, checkpointing and distributed test.
    "tests/faults/test_configuration.py::test_a_broken_config_file": DEFAULT,
    "tests/faults/test_damaged_checkpoints.py::test_two_damaged_ones": DEFAULT,
    "tests/faults/test_nonfinite.py::test_one_bad_step": DEFAULT,
    "tests/faults/test_prepare_kills.py::test_two_at_once": DEFAULT,
    "tests/faults/test_recover.py": DEFAULT,
    "tests/faults/test_run_files.py::test_a_first_start": DEFAULT,
    "tests/faults/test_signals.py::test_each_of_the_signals": DEFAULT,
    "tests/faults/test_stderr.py": DEFAULT,
    "tests/faults/test_training_text.py::test_odd_but_usable": DEFAULT,
    "tests/faults/test_untrusted_directories.py::test_a_checkpoint_of_pickles": DEFAULT,
    "tests/faults/test_vocabulary.py::test_another_vocabulary": DEFAULT,
    "tests/faults/test_workdir.py::test_a_changed_configuration": DEFAULT,
}


def tier_of(test_id: str) -> str:
    """Returns the tier of a test.

    Args:
      test_id: of pytest, such as `tests/data/test_lines.py::test_name[1]`.

    Example:
      >>> tier_of("tests/faults/test_kills.py::test_a"), tier_of("tests/test_a.py")
      ('full', 'quick')
    """
    return TIERS[max((p for p in TIERS if test_id.startswith(p)), key=len)]


def soak(*values: object) -> Any:
    """Returns the parameters of a case for `soak` alone."""
    return pytest.param(*values, marks=pytest.mark.soak)


def mark(tests: Iterable[pytest.Item]) -> None:
    """Marks each test with its tier, for `-m` in launch/test.sh."""
    for test in tests:
        test.add_marker(tier_of(test.nodeid))
