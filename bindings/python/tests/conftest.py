from __future__ import annotations

import pytest

import countersign
from cases import REGISTRY


@pytest.fixture(scope="session")
def registry() -> countersign.Registry:
    return countersign.Registry(REGISTRY)
