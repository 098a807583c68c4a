"""Evaluation: scores, the protocol for one training sample, the runner; users' own models."""
