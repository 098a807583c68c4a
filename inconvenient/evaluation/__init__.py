"""Evaluation: scores, the protocol for one training sample, and the runner over a shift set; users' models."""
