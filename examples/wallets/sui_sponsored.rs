//! A Sui wallet whose gas is paid by another account, and whose deposit comes from the owner's own address balance. The sender signs first;
//! the sponsor signs later and elsewhere.

use std::error::Error;

use countersign::sui::sui_crypto::ed25519::Ed25519PrivateKey;
use countersign::sui::sui_sdk_types::{Digest, ObjectReference};
use countersign::sui::{self, TxContext};
use countersign::{Code, CreateOrder, Policy, Proposal, U256, wire::RequestedLeg};
use countersign_examples::{pinned_registry, service, sui_seed};

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let sender = Ed25519PrivateKey::new(sui_seed());
    let sponsor = Ed25519PrivateKey::new([7; 32]);
    let request = CreateOrder::new(
        RequestedLeg::new("sui_testnet:sui".parse()?, sender.public_key().derive_address().to_string(), U256::from(3_000_000_000_u64)),
        RequestedLeg::new(
            "bitcoin_testnet:btc".parse()?,
            "tb1pf0l2vqsc559un3gdf3up4wz4wdcfwxk5rhwv09cajg883ac3x8qs7zj32r",
            U256::from(90_790),
        ),
    )
    .with_secret_hash("0xa620ccfa9fae3d5054aeb9845754ae00d0ac3d1f7edce9744de57883e0a84ac7".parse()?);
    let response = service::create_order(&request);
    let order = sui::verify(Proposal::new(&request, response), &pinned_registry(), &Policy::default())?;
    print!("{}", order.summary());

    // The sponsor gives one of its coins, the gas price and the budget. The order withdraws its amount from the owner's address balance, so
    // the coin pays for gas only. An order that splits the amount from the gas coins would take it from the sponsor, and is warned of.
    let sponsor_address = sponsor.public_key().derive_address();
    let coin =
        ObjectReference::new("0xceb1ea315041f4e427f302e2e42b1af84394116abdfd0e5449deb05dc6a775e0".parse()?, 12, Digest::new([5; 32]));
    let mut unsigned = order.prepare(TxContext::sponsored(sponsor_address, 1_000, 10_000_000, vec![coin]))?;
    assert!(unsigned.warnings().list().iter().all(|warning| warning.code() != Code::SponsorPaysDeposit));
    println!("of the sponsor: gas and {} MIST", order.deposit().split_from_gas());
    unsigned.sign_with(&sender)?;
    println!("still missing: {:?}", unsigned.missing());

    // Without the sponsor's signature the order is incomplete. `finish` then returns it with the signatures that it has.
    let mut unsigned = match unsigned.finish() {
        Ok(_) => return Err("the sponsor has not signed yet".into()),
        Err(incomplete) => incomplete.into_unsigned(),
    };
    unsigned.sign_with(&sponsor)?;
    let signed = unsigned.finish()?;
    for transaction in signed.transactions() {
        println!("execute {} with {} signatures", transaction.id, transaction.native.signatures.len());
    }
    Ok(())
}
