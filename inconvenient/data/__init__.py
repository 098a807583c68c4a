"""Datasets: the catalogue's and the user's own, loading and splitting."""

from inconvenient.data.dataset import Dataset
from inconvenient.data.frames import as_frame
from inconvenient.data.loading import list_datasets, load_dataset
from inconvenient.data.preparation import check_feature, prepare_table
from inconvenient.data.reading import read_table
from inconvenient.data.split import Split, split_dataset

__all__ = [
    "Dataset",
    "Split",
    "as_frame",
    "check_feature",
    "list_datasets",
    "load_dataset",
    "prepare_table",
    "read_table",
    "split_dataset",
]
