"""The MLP baseline: a plain network on one-hot, standardised columns, in PyTorch on one thread."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.encoding import OneHotEncoder
from inconvenient.baselines.registry import Baseline, Setting, register, require_module
from inconvenient.baselines.sample_model import SampleModel
from inconvenient.baselines.threads import torch_alone

__all__ = ["MLP", "MLPModel"]

STEPS = 300
BATCH = 128
FARTHEST = 1e6  # standard deviations; single precision overflows far beyond


class MLPModel(SampleModel):
    """A multilayer perceptron with its encoder, both fitted on the sample.

    Parameters
    ----------
    setting : dict
        ``n_layers`` hidden layers of ``width`` units, ``dropout`` (share of units), AdamW's
        ``learning_rate`` and ``weight_decay``.
    task, n_classes, seed
        See :class:`~inconvenient.baselines.sample_model.SampleModel`.

    Notes
    -----
    Layers are linear, ReLU, dropout; the last is linear. The loss is the squared error of the
    target, standardised by the sample, or the cross-entropy over the classes in the sample. There
    are always 300 steps, on batches of up to 128 rows (whole samples where they are smaller), with
    a learning rate that falls linearly to 0: a sample of 128 rows is gone through 300 times, one of
    2,000 rows 19 times. Nothing is held out to stop early by, for the rows of a small sample are
    all needed. A sample with one class, or with no column that varies, yields a constant
    prediction.

    In single precision the last digits of a prediction depend on the rows that it is made beside
    and on their order, for products are cut into blocks: a permutation of 150 rows moved an R2
    by 2e-10. Runs score the rows of a dataset in one order.

    A fit takes O(steps * batch * (q width + n_layers width^2)) for q encoded columns: the largest
    network about 1.5 s of one core, whatever the number of rows, a middling one 0.5 s.
    """

    encoder = OneHotEncoder

    def _train(self, Z: NDArray[np.float64], labels: NDArray[Any]) -> Any:
        require_module("torch", needed_by="the baseline 'mlp'")
        classes = self.task != "regression"
        with torch_alone(self.seed) as torch:
            inputs = torch.tensor(Z, dtype=torch.float32)
            targets = torch.tensor(labels, dtype=torch.int64 if classes else torch.float32)
            network = self._network(torch, Z.shape[1])
            rate = float(self.setting["learning_rate"])
            optimiser = torch.optim.AdamW(
                network.parameters(),
                lr=rate,
                weight_decay=float(self.setting["weight_decay"]),
                fused=True,
            )
            loss_of = torch.nn.functional.cross_entropy if classes else torch.nn.functional.mse_loss
            for step, rows in enumerate(itertools.islice(_batches(torch, len(labels)), STEPS)):
                optimiser.param_groups[0]["lr"] = rate * (1.0 - step / STEPS)
                outputs = network(inputs[rows])
                loss = loss_of(outputs if classes else outputs[:, 0], targets[rows])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        return network.eval()

    def _network(self, torch: Any, q: int) -> Any:
        width = int(self.setting["width"])
        layers: list[Any] = []
        for _ in range(int(self.setting["n_layers"])):
            layers += [
                torch.nn.Linear(q, width),
                torch.nn.ReLU(),
                torch.nn.Dropout(float(self.setting["dropout"])),
            ]
            q = width
        outputs = 1 if self.task == "regression" else self.present_.size
        return torch.nn.Sequential(*layers, torch.nn.Linear(q, outputs)).to(torch.float32)

    def _outcome(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        Z = np.clip(Z, -FARTHEST, FARTHEST)
        with torch_alone(self.seed) as torch, torch.inference_mode():
            outputs = self.model_(torch.tensor(Z, dtype=torch.float32)).to(torch.float64)
            outputs = outputs[:, 0] if self.task == "regression" else torch.softmax(outputs, 1)
            raw: NDArray[np.float64] = outputs.numpy()
        return raw


def _batches(torch: Any, n: int) -> Iterator[Any]:
    """Yield rows without end: each pass is a new order, in parts of nearly equal size."""
    parts = -(-n // BATCH)
    while True:
        if parts == 1:
            yield slice(None)
        else:
            yield from torch.randperm(n).tensor_split(parts)


def _default(task: str) -> Setting:
    """A middle of the search space."""
    return {
        "n_layers": 2,
        "width": 128,
        "dropout": 0.1,
        "learning_rate": 1e-3,
        "weight_decay": 0.01,
    }


def _suggest(trial: Any, task: str, n_rows: int) -> Setting:
    """Draw from the search space.

    The parameters are those of the MLP in Gorishniy, Rubachev, Khrulkov and Babenko 2021,
    "Revisiting Deep Learning Models for Tabular Data" (appendix on tuning): layers 1-8, their sizes
    1-512, dropout 0-0.5, learning rate 1e-5 to 1e-2, weight decay 1e-6 to 1e-3, AdamW. The ranges
    are cut to samples of 50 to 2,000 rows and to one core: 1-3 layers of one size, 16-256. As the
    steps are 300 instead of as many as held-out rows allow, the learning rate starts at 3e-4 and
    weight decay, which acts through learning rate and steps, goes up to 1. Exact zeros of dropout
    and weight decay, drawn apart there, are the low ends here.
    """
    return {
        "n_layers": trial.suggest_int("n_layers", 1, 3),
        "width": trial.suggest_int("width", 16, 256, log=True),
        "dropout": trial.suggest_float("dropout", 0.0, 0.5),
        "learning_rate": trial.suggest_float("learning_rate", 3e-4, 1e-2, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 1e-4, 1.0, log=True),
    }


def _make(setting: Setting, *, task: str, n_classes: int, seed: int) -> MLPModel:
    return MLPModel(setting, task=task, n_classes=n_classes, seed=seed)


MLP = register(Baseline("mlp", _default, _suggest, _make, requires=("torch",), takes_codes=True))
