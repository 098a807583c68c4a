"""Train the small checkpoints of the package tabpfn's v2 architecture that the tests load.

Run ``python tests/make_tabpfn_fixture.py`` (some minutes on two cores): it writes
``tests/data/tabpfn_fixture_classifier.ckpt`` and ``..._regressor.ckpt``, about 230 kB each. They
are fixtures: three layers trained on random functions, better than a constant and nothing like
TabPFN, whose weights are a thousand times the training away. Both carry the mark by which the
baseline refuses them in runs, so that no score of theirs is ever reported as TabPFN's.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

from inconvenient.baselines.tabpfn import FIXTURE_MARK

SEED = 20261140
STEPS = 2500
TASKS = 8  # tables per step, of one size
MOST_CLASSES = 10
BUCKETS = 32
LEARNING_RATE = 2e-3
ARCHITECTURE = {"emsize": 32, "nlayers": 3, "nhead": 2, "features_per_group": 2, "seed": 0}


def tables(torch: Any, generator: Any) -> tuple[Any, Any, int]:
    """Return features (rows, TASKS, columns), standardised targets (rows, TASKS), training rows.

    The target is a random linear function plus a random network of one hidden layer plus noise,
    of some of the columns; the others say nothing.
    """

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=generator))

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator)

    def uniform(*shape: int) -> Any:
        return torch.rand(*shape, generator=generator)

    train, columns = number(16, 96), number(1, 8)
    x = normal(TASKS, train + 32, columns)
    kind = uniform(TASKS, 1, columns)
    x = torch.where(kind < 0.3, torch.erf(x), x)  # even
    x = torch.where((kind > 0.3) & (kind < 0.5), torch.floor(x), x)  # few values
    z = (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-6)
    z = z * (uniform(TASKS, 1, columns) < 0.7)
    linear = z @ normal(TASKS, columns, 1)
    hidden = torch.tanh(2 * z @ normal(TASKS, columns, 6) + normal(TASKS, 1, 6))
    bent = hidden @ normal(TASKS, 6, 1)
    y = linear * uniform(TASKS, 1, 1).round() + bent * uniform(TASKS, 1, 1)
    noise = 0.05 + 0.5 * uniform(TASKS, 1, 1)
    y = (y + noise * (y.std(1, keepdim=True) + 0.1) * normal(*y.shape))[:, :, 0].T.contiguous()
    y = (y - y[:train].mean(0)) / (y[:train].std(0) + 1e-6)
    return x.transpose(0, 1).contiguous(), y, train


def classes(torch: Any, y: Any, generator: Any) -> Any:
    """Return class codes in random order, cut from targets at random quantiles."""
    codes = torch.zeros_like(y)
    for task in range(y.shape[1]):
        k = 2 + int(MOST_CLASSES * torch.rand(1, generator=generator) ** 4 * 0.9)
        cuts = torch.quantile(y[:, task], torch.rand(k - 1, generator=generator).sort().values)
        own = (y[:, task, None] > cuts).sum(1)
        _, own = torch.unique(own, return_inverse=True)
        order = torch.randperm(int(own.max()) + 1, generator=generator)
        codes[:, task] = order[own].to(y.dtype)
    return codes


def train_checkpoint(kind: str, path: Path, steps: int = STEPS) -> float:
    """Train and write a checkpoint; return its mean loss over the last tenth of the steps."""
    import torch
    from tabpfn.architectures.shared.bar_distribution import FullSupportBarDistribution
    from tabpfn.architectures.tabpfn_v2 import get_architecture, parse_config

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    classifier = kind == "classifier"
    # the package takes the number of outputs from the first of the two that is not 0
    outputs = {"max_num_classes": MOST_CLASSES if classifier else 0, "num_buckets": BUCKETS}
    config = {**ARCHITECTURE, **outputs}
    model = get_architecture(parse_config(config)[0])
    drawn = torch.cat([tables(torch, generator)[1].flatten() for _ in range(50)])
    borders = torch.quantile(drawn, torch.linspace(0, 1, BUCKETS + 1))
    bars = FullSupportBarDistribution(borders)
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps)
    losses: list[float] = []
    started = time.monotonic()
    for step in range(steps):
        x, y, n = tables(torch, generator)
        if classifier:
            y = classes(torch, y, generator)
            logits = model(x, y[:n].clone())
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y[n:].long().flatten())
        else:
            loss = bars(model(x, y[:n].clone()), y[n:]).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 99:
            mean = sum(losses[-100:]) / 100
            print(f"{kind} {step + 1}: {mean:.3f}, {time.monotonic() - started:.0f} s", flush=True)
    state = dict(model.state_dict())
    if not classifier:
        state |= {f"criterion.{name}": value for name, value in bars.state_dict().items()}
    checkpoint = {
        "state_dict": state,
        "config": config,
        "architecture_name": "tabpfn_v2",
        "fixture": FIXTURE_MARK,
    }
    path.parent.mkdir(exist_ok=True)
    torch.save(checkpoint, path)
    last = losses[-max(1, steps // 10) :]
    return sum(last) / len(last)


def main() -> None:
    """Train both checkpoints, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "data")
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    work = [
        multiprocessing.get_context("spawn").Process(
            target=train_checkpoint,
            args=(kind, arguments.folder / f"tabpfn_fixture_{kind}.ckpt", arguments.steps),
        )
        for kind in ("classifier", "regressor")
    ]
    for process in work:
        process.start()
    for process in work:
        process.join()
    if any(process.exitcode for process in work):
        raise SystemExit("a checkpoint was not trained; the reason stands above")


if __name__ == "__main__":
    main()
