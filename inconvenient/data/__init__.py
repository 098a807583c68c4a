"""Datasets: the catalogue's and the user's own, loading and splitting."""

from inconvenient.data.dataset import Dataset
from inconvenient.data.split import Split, split_dataset

__all__ = ["Dataset", "Split", "split_dataset"]
