"""Verifies what a cross-chain swap service asks a wallet to sign, before anything is signed.

The states of an order are `Order` (verified), `UnsignedOrder` and `SignedOrder`. `verify_line` and `verify_many` take whole cases
as JSON. A `Reader` says what to ask a chain, and a `Quorum` compares what several endpoints show. Everything that is refused raises
`Refusal`.
"""

from countersign_swap import _native, _shapes
from countersign_swap._native import *  # noqa: F403
from countersign_swap._shapes import *  # noqa: F403

__all__: list[str] = []
__all__ += _native.__all__
__all__ += _shapes.__all__
