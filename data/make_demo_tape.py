"""Make the demo tape anew: ``python data/make_demo_tape.py``; a minute.

It trains in virtual time with real gradients, under the faults of ``demo-tape.toml``, and keeps what the pages need:
the configuration and the tape.  The times are the same on every machine; the last bits of losses and norms may differ.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from workbench import preset
from workbench.protocol.scenario import load_faults
from workbench.simulate.training_run import train_virtual

HERE = Path(__file__).parent
TAPE = HERE / "demo-tape"
SETTINGS = {
    "rounds": 86, "period": 12, "fragments": 4, "quorum": 2, "eval_every": 4, "seed": 7, "grace_gamma": 0.5,
    "heartbeat_limit_s": 1.5, "virtual.step_s": 0.15, "virtual.delay_s": 0.01, "virtual.merge_s": 0.02,
    "model.width": 64, "model.mlp": 128, "model.context": 64,
}  # fmt: skip
KEPT = ("config.toml", "tape")


def main() -> None:
    """Train in a scratch folder, then put what is kept in the place of what was there."""
    config = preset("tiny-4").set(**SETTINGS)
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / TAPE.name
        run = train_virtual(config, made, load_faults(HERE / "demo-tape.toml", config))
        shutil.rmtree(TAPE, ignore_errors=True)
        TAPE.mkdir()
        for name in KEPT:
            shutil.move(made / name, TAPE / name)
    size = sum(path.stat().st_size for path in TAPE.rglob("*") if path.is_file())
    print(f"{TAPE}: {run.merges} merges in {run.virtual_s:.1f} s of virtual time, {size:,} bytes")


if __name__ == "__main__":
    main()
