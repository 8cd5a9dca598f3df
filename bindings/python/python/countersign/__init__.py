"""Verifies what a cross-chain swap service asks a wallet to sign, before anything is signed.

The states of an order are `Order` (verified), `UnsignedOrder` and `SignedOrder`. `verify_line` and `verify_many` take whole cases
as JSON. Everything that is refused raises `Refusal`.
"""

from countersign._native import (
    Coverage,
    Htlc,
    HtlcTerms,
    Line,
    Native,
    Notice,
    Order,
    Policy,
    Proof,
    Record,
    Recovery,
    Refusal,
    Registry,
    Request,
    SignedOrder,
    Terms,
    Transaction,
    UnsignedOrder,
    Value,
    __version__,
    verify_line,
    verify_many,
)

__all__ = [
    "Coverage",
    "Htlc",
    "HtlcTerms",
    "Line",
    "Native",
    "Notice",
    "Order",
    "Policy",
    "Proof",
    "Record",
    "Recovery",
    "Refusal",
    "Registry",
    "Request",
    "SignedOrder",
    "Terms",
    "Transaction",
    "UnsignedOrder",
    "Value",
    "__version__",
    "verify_line",
    "verify_many",
]
