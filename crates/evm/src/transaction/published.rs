//! Published transactions, which no order contains: the examples of the EIPs.

use alloy_consensus::TypedTransaction;
use alloy_primitives::{U256, hex};
use countersign_evm_core::payloads::Transaction as _;
use countersign_evm_core::signature::Key;

use super::{EvmTransaction, Payload, TxContext};
use crate::deposit::Call;

fn hex(bytes: impl AsRef<[u8]>) -> String {
    hex::encode_prefixed(bytes)
}

/// Creates a transaction in the same way as every call of an order.
fn example(chain_id: u64, to: &str, value: u64, gas_limit: u64, calls: &TxContext) -> EvmTransaction {
    let call = Call { to: to.parse().unwrap(), value: U256::from(value), gas_limit, data: Default::default() };
    EvmTransaction::new(chain_id, calls.nonce, calls.fees, &call)
}

fn signed(transaction: &EvmTransaction, key: &Key) -> Vec<u8> {
    let signature = key.sign(&transaction.digest()).unwrap();
    let (_, bytes, _) = transaction.signed(&signature, &[]);
    bytes
}

/// <https://eips.ethereum.org/EIPS/eip-155>, "Example".
#[test]
fn the_example_of_eip_155() {
    let key = Key::parse("0x4646464646464646464646464646464646464646464646464646464646464646").unwrap();
    let to = "0x3535353535353535353535353535353535353535";
    let transaction = example(1, to, 1_000_000_000_000_000_000, 21_000, &TxContext::legacy(9, 20_000_000_000));
    assert_eq!(
        hex(transaction.signing_bytes()),
        "0xec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080"
    );
    assert_eq!(hex(transaction.digest()), "0xdaf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53");
    assert!(matches!(transaction.payload(), Payload::Transaction(TypedTransaction::Legacy(_))));
    assert_eq!(
        hex(signed(&transaction, &key)),
        "0xf86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe53756\
         7866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
    );
}

/// ethereumjs, `packages/tx/test/json/eip1559.json` at 052242cc, first, fourth and last: an empty access list, nonces and
/// fees of one to three bytes, both parities. (The list wraps each transaction in one more RLP string, left out here.)
#[test]
fn the_eip_1559_vectors_of_ethereumjs() {
    for (nonce, value, gas_limit, priority, cap, raw) in [
        (
            819,
            43_203_529,
            35_552,
            75_853,
            121_212,
            "02f870821e8e8203338301284d8301d97c828ae094000000000000000000000000000000000000aaaa8402933bc980c080a0d067f2167008c592196\
             52f91cbf8788dbca5f771f6e91e2b7657e85b78b472e0a01d305af9fe81fdba43f0dfcd400ed24dcace0a7e30d4e85701dcaaf484cd079e",
        ),
        (
            623,
            21_649_799,
            57_725,
            74_140,
            81_173,
            "02f870821e8e82026f8301219c83013d1582e17d94000000000000000000000000000000000000aaaa84014a598780c080a0b107893e4590e177e24\
             4493a3f2b59d63619ddd82772105d8c96b7fc85ff683da07dc9b9dc054d2f69f9cc540688f6c0da3b54dd8bd8323f06d0ca26b546a480f1",
        ),
        (
            119,
            65_456_115,
            62_341,
            24_721,
            107_729,
            "02f86d821e8e778260918301a4d182f38594000000000000000000000000000000000000aaaa8403e6c7f380c001a0e38e239770801eb995498c821\
             e55ac9c19ae09184bb27b34be105e02fe3b7615a067c64ca6bd6d9107e85fd581ab2e70a14b637eb36505bb40861ef9d6e800cab6",
        ),
    ] {
        let key = Key::parse("0x8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63").unwrap();
        let calls = TxContext::eip1559(nonce, cap, priority);
        let transaction = example(0x1e8e, "0x000000000000000000000000000000000000aaaa", value, gas_limit, &calls);
        assert_eq!(hex(signed(&transaction, &key)), format!("0x{raw}"), "nonce {nonce}");
    }
}
