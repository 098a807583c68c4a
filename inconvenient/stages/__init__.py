"""Pipeline stages: each reads artefacts, calls the layer that computes, and writes one folder."""
