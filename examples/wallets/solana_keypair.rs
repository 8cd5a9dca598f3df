//! A Solana wallet with a keypair of the SDK. It signs the gasless transaction, which the service co-signs and pays for, and a
//! transaction with a priority fee that the owner sends.

use std::error::Error;

use countersign::solana::{self, Gasless, PriorityFee, TxContext};
use countersign::{CreateOrder, Policy, Proposal, U256, wire::RequestedLeg};
use countersign_examples::{pinned_registry, service};
use solana_keypair::Keypair;
use solana_signer::Signer;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let keypair = Keypair::new_from_array(countersign_examples::solana_seed());
    let request = CreateOrder::new(
        RequestedLeg::new("solana:usdc".parse()?, keypair.pubkey().to_string(), U256::from(1_750_000_000)),
        RequestedLeg::new("bitcoin:btc".parse()?, "bc1ps8g8s09nx4hf7alc2fk9rfxhuvhq024tl3jp84cefjctenvgejjse6ddl3", U256::from(48_515)),
    )
    .with_secret_hash("0xd30cddecd7caa81b9fb461e77a3489328635cd20f4e7fa5d46ce95e65040a674".parse()?);
    let response = service::create_order(&request);
    let order = solana::verify(Proposal::new(&request, response), &pinned_registry(), &Policy::default())?;
    print!("{}", order.summary());

    // The service sends the transaction and pays for it. The wallet only signs.
    let mut gasless = order.prepare(Gasless)?;
    gasless.sign_with(&keypair)?;
    let submission = gasless.finish()?.gasless().ok_or("the order has a gasless path")?;
    println!("send to the service: {}", submission.signature);

    // The owner sends the transaction and pays for it, with the blockhash of the response and a priority fee within the policy.
    let mut own = order.prepare(TxContext::new().with_priority_fee(PriorityFee::new(50_000)))?;
    own.sign_with(&keypair)?;
    for transaction in own.finish()?.transactions() {
        println!("broadcast {} {}, {} bytes", transaction.role, transaction.id, transaction.bytes.len());
    }
    Ok(())
}
