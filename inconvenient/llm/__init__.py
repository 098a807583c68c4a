"""Language models: can one tell which coefficients were bent, and what its knowledge is worth."""
