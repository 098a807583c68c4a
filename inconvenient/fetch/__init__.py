"""Published data and shifts for who has no checkout: from ``dvc-store/``, over HTTP or a path.

The folder holds DVC's objects, each under the hash of its content, and ``index.json``, which
names the published folders by their hash; DVC itself is not needed to read it.
"""

from inconvenient.fetch.bringing import Fetched, fetch
from inconvenient.fetch.outs import INDEX, STORE, published_index

__all__ = ["INDEX", "STORE", "Fetched", "fetch", "published_index"]
