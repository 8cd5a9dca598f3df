"""The wallet's tests: `python3 -m unittest` in this folder, or pytest."""

import unittest
from pathlib import Path

from sandbox import CHECKOUT, Sandbox, built
from wallet import Refused, Wallet


class WalletTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sandbox = Sandbox("--chains", "base,arbitrum")
        cls.addClassCleanup(cls.sandbox.stop)
        nodes = {name: chain["url"] for name, chain in cls.sandbox.chains.items()}
        registry = Path(cls.sandbox.config).with_name("registry.json")
        address = cls.sandbox.chains["base"]["account"]
        program = built("countersign", "COUNTERSIGN_PROGRAM", CHECKOUT / "target")
        cls.wallet = Wallet(cls.sandbox.service, nodes, str(registry), address, cls.sandbox.key, program)

    def setUp(self):
        self.sandbox.post("lies", name="none", on="true")

    def test_a_swap_completes(self):
        record = self.wallet.swap("base:usdc", "arbitrum:usdc", 5_000_000)
        self.assertEqual(record["destination_swap"]["filled_amount"], "4985000")
        self.assertNotEqual(record["destination_swap"]["redeem_tx_hash"], "")

    def test_nothing_is_sent_if_the_service_names_a_stranger_as_the_redeemer(self):
        self.sandbox.post("lies", name="evm-redeemer", on="true")
        before = self.wallet.sent("base:usdc")
        with self.assertRaises(Refused) as refused:
            self.wallet.swap("base:usdc", "arbitrum:usdc", 6_000_000)
        self.assertEqual(refused.exception.code, "unknown_redeemer")
        self.assertEqual(self.wallet.sent("base:usdc"), before)


if __name__ == "__main__":
    unittest.main()
