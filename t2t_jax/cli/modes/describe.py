"""`--mode=describe`: prints a configuration, its size and costs, without training."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

from t2t_jax.cli.flags.options import DescribeOptions
from t2t_jax.config import Config
from t2t_jax.data.corpora.open import count_pairs, train_and_dev
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.errors import ConfigError, DataError
from t2t_jax.files import read_json_object
from t2t_jax.run.start import require_configured
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from jax.sharding import Mesh

_PARTS = ("train", "dev")
_MOST_DEVICES = 10_000  # JAX takes about 10 s to simulate 2,000


def run(options: DescribeOptions) -> None:
    """Prints a report on stdout, as tables or one JSON object.

    Raises:
      UserError: a corpus is invalid, or the devices do not fit the mesh.
    """
    config = options.config
    require_configured(config)
    request, note, peak = None, "", options.peak_tflops
    if options.topology:
        from t2t_jax.devices.sharding.mesh import make_mesh
        from t2t_jax.devices.topology import parse_topology
        from t2t_jax.run.description.topology_costs import TopologyRequest

        topology = parse_topology(options.topology, peak_tflops=peak)
        request = TopologyRequest(topology, options.decode, options.save_hlo)
        mesh = make_mesh(topology.devices(), **config.mesh.axes)
        peak = 0.0  # estimated otherwise
    else:
        mesh, note = _mesh(config.mesh, devices=options.devices)
    data = count_pairs_of(config, workdir=options.workdir)
    if note:
        print(note, file=sys.stderr)
    print("Compiling the training step to read its costs …", file=sys.stderr)
    from t2t_jax.run.description.summary import describe

    description = describe(
        config, mesh=mesh, data=data, request=request, peak_tflops=peak, mfu=options.mfu
    )
    if options.format == "json":
        print(json.dumps(description, indent=2))
        return
    from t2t_jax.cli.console.describe_report import sections
    from t2t_jax.cli.console.tables import show

    show(sections(description), file=sys.stdout)


def count_pairs_of(config: Config, *, workdir: Workdir) -> dict[str, Any]:
    """Reads the sizes of the run's corpora from its data.json, or counts them.

    Returns:
      For train, and for dev if evaluation is on: spec, `pairs` (None if unknown),
      `note` (the reason), and, from data.json, the mean length of either side in
      subwords.

    Raises:
      ConfigError: a spec is invalid.
      DataError: data.json is damaged.
    """
    specs = dict(zip(_PARTS, train_and_dev(config.data), strict=True))
    if not config.evaluation.every_steps:
        del specs["dev"]
    path = workdir.path / "data.json"
    if not path.is_file():
        each = specs.items()
        return {part: count_pairs(spec, key=f"data.{part}") for part, spec in each}
    read = read_json_object(path, advice="Remove it.")
    try:
        return {
            part: {
                "spec": read[part]["spec"],
                "pairs": read[part]["counts"]["kept"],
                "note": "",
                "mean_length": read[part]["mean_length"],
            }
            for part in _PARTS
            # Without evaluation data.json lacks dev.
            if part == "train" or part in read
        }
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} is damaged: no corpora in it. Remove it.") from error


def _mesh(config: MeshConfig, *, devices: int) -> tuple[Mesh, str]:
    """Makes the mesh of this machine's devices, or of simulated ones.

    Args:
      devices: 0 if not given.

    Returns:
      The mesh, and a note if its size was not requested; else "".

    Raises:
      ConfigError: `devices` does not fit, or there are more than can be simulated.
    """
    text = "mesh " + " x ".join(f"{axis}={size}" for axis, size in config.axes.items())
    fewest = math.prod(max(size, 1) for size in config.axes.values())
    is_open = -1 in config.axes.values()  # which takes all remaining devices

    def fits(number: int) -> bool:
        return number % fewest == 0 if is_open else number == fewest

    if max(devices, fewest) > _MOST_DEVICES:
        raise ConfigError(
            f"--mode=describe simulates at most {_MOST_DEVICES:,} devices, not "
            f"{max(devices, fewest):,}. Change --devices or config.mesh."
        )
    if devices and not fits(devices):
        raise ConfigError(
            f"--devices={devices} does not fit {text}, which needs "
            f"{'a multiple of ' * is_open}{fewest}. Change --devices or config.mesh."
        )
    import jax

    from t2t_jax.devices.sharding.mesh import make_mesh

    if devices:
        _simulate(devices)
    here = jax.device_count()
    if fits(here):
        return make_mesh(None, **config.axes), ""
    simulated = " simulated ones" * (here < fewest)
    if simulated:
        _simulate(fewest)
    note = (
        f"{text} does not fit the {here} devices here: described for "
        f"{fewest}{simulated}."
    )
    return make_mesh(jax.devices()[:fewest], **config.axes), note


def _simulate(devices: int) -> None:
    """Reinitializes JAX with this many simulated CPU devices."""
    import jax
    from jax.extend.backend import clear_backends

    clear_backends()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)
