"""Numba kernels of the hot path; a module is compiled, or loaded from disk, when first imported.

They import NumPy and Numba only, call neither BLAS nor libm, and sum in a fixed order, so that
their results have the same bytes on every x86-64 machine, for every number of threads. Inputs
passed the gate of the Python layer (finite, C-order, float64) and are not checked again; a
numerical failure is a status code other than zero.
"""
