"""Datasets: the catalogue, loading, splitting, and tables of one's own."""

from inconvenient.data.dataset import Dataset
from inconvenient.data.loading import list_datasets, load_dataset
from inconvenient.data.split import Split, split_dataset

__all__ = [
    "Dataset",
    "Split",
    "list_datasets",
    "load_dataset",
    "split_dataset",
]
