//! A wallet with an alloy signer. It is a local key here; a Ledger, a Trezor or a key service works with the same code.
//!
//! The wallet first pays with two transactions, an exact approval and `initiate`. Then it shows the gasless path, which needs neither a
//! nonce nor fees.

use std::error::Error;

use alloy_signer_local::PrivateKeySigner;
use countersign::evm::{self, ApprovalStep, Gasless, TxContext};
use countersign::{CreateOrder, Policy, Proposal, U256, wire::RequestedLeg};
use countersign_examples::{pinned_registry, service};
use futures_util::FutureExt;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let signer: PrivateKeySigner = include_str!("../keys/evm.key").trim().parse()?;
    let owner = signer.address().to_string();

    let request = CreateOrder::new(
        RequestedLeg::new("arbitrum:wbtc".parse()?, owner, U256::from(3_100_000)),
        RequestedLeg::new("bitcoin:btc".parse()?, "bc1qy8znwzgy8xx68mjv06kfwgwh3jfgptylwhklck", U256::from(2_590_000)),
    )
    .with_secret_hash("0x0be2b009c9927d5e7b5369451166f9ab21ed30d41c7c8aba555c406cfb45e6cf".parse()?);
    let response = service::create_order(&request);
    let record = service::order(&request).ok_or("the service has no record of the order")?;

    let (registry, policy) = (pinned_registry(), Policy::default());
    let order = evm::verify(Proposal::new(&request, response).with_record(record), &registry, &policy)?;
    print!("{}", order.summary());
    for warning in order.warnings() {
        println!("{}: {warning}", warning.severity());
    }

    // The owner changes the fees. The verified order can be prepared again.
    let slow = order.prepare(TxContext::eip1559(7, 1_000_000_000, 1_000_000))?;
    println!("slow: {} requests", slow.requests().len());
    let mut fast = order.prepare(TxContext::eip1559(7, 30_000_000_000, 1_000_000_000).with_approval(ApprovalStep::Exact))?;
    fast.sign_with_async(&signer).now_or_never().ok_or("a local signer must not wait")??;
    for transaction in fast.finish()?.transactions() {
        println!("broadcast {} {}, {} bytes", transaction.role, transaction.id, transaction.bytes.len());
    }

    // The gasless path: the owner signs once, and the service sends the transaction and pays for it.
    let mut gasless = order.prepare(Gasless)?;
    gasless.sign_with(&signer)?;
    let submission = gasless.finish()?.gasless().ok_or("the order has a gasless path")?;
    println!("send to the service: {}", submission.signature);
    Ok(())
}
