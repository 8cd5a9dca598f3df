from __future__ import annotations

import pytest

import countersign_swap
from cases import REGISTRY


@pytest.fixture(scope="session")
def registry() -> countersign_swap.Registry:
    return countersign_swap.Registry(REGISTRY)
