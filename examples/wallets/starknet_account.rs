//! A Starknet wallet. The account executes the calls in one transaction that it creates itself, and the wallet matches that with the
//! order. A signer of starknet-rs signs the gasless message.

use std::error::Error;

use countersign::starknet::starknet_signers::{LocalWallet, Signer, SigningKey};
use countersign::starknet::{self, Call, ExecutionEncoding, Felt, InvokeTransaction, KeyedPath, ResourceBound, ResourceBounds};
use countersign::{CreateOrder, Policy, Proposal, U256, wire::RequestedLeg};
use countersign_examples::{pinned_registry, service};
use futures_util::FutureExt;

/// A substitute for `account.execute`: the account chooses nonce and fees, signs and broadcasts.
async fn execute(account: Felt, calls: &[Call], signer: &LocalWallet) -> Result<InvokeTransaction, Box<dyn Error>> {
    let bounds = ResourceBounds::new(ResourceBound::new(0, 1), ResourceBound::new(2_000_000, 9_000_000_000), ResourceBound::new(512, 1));
    let transaction = InvokeTransaction::new(account, ExecutionEncoding::default().encode(calls), Felt::from(33_u8), bounds);
    let chain_id = Felt::from_hex("0x534e5f4d41494e")?;
    let signature = signer.sign_hash(&transaction.hashes(chain_id).tx_hash).await?;
    Ok(transaction.with_signature(vec![signature.r, signature.s]))
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let signer =
        LocalWallet::from_signing_key(SigningKey::from_secret_scalar(Felt::from_hex(include_str!("../keys/starknet.key").trim())?));
    let account = "0x03b85419ff93554077c0809b470cefb22acde8ad57aac1c7ec8c7586e9b83f92";
    let request = CreateOrder::new(
        RequestedLeg::new("starknet:wbtc".parse()?, account, U256::from(1_250_000)),
        RequestedLeg::new("bitcoin:btc".parse()?, "bc1ptjudjmnh8vhpusr9vl9llqzxhmypm9pclhz6gv4s97uw53zc0k9s9s9am7", U256::from(1_246_250)),
    )
    .with_secret_hash("0x38a6f884550fdf7313a9717c0fcfeedde58c3f8238bf9c1d2ede4c9467655ae7".parse()?);
    let response = service::create_order(&request);
    let order = starknet::verify(Proposal::new(&request, response), &pinned_registry(), &Policy::default())?;
    print!("{}", order.summary());

    // The account executes the approval and the initiate call. The broadcast transaction must match the order.
    let calls: Vec<_> = order.deposit().calls(starknet::ApprovalStep::Exact).into_iter().map(|(_, call)| call).collect();
    let sent = execute(Felt::from_hex(account)?, &calls, &signer).now_or_never().ok_or("a local signer must not wait")??;
    println!("the account sent the {} with {} calls", order.matches(&sent)?, calls.len());

    // The signature of the gasless message is proven with the account's public key.
    let public_key = signer.get_public_key().now_or_never().ok_or("a local signer must not wait")??.scalar();
    let mut gasless = order.prepare(KeyedPath::gasless(public_key))?;
    gasless.sign_with_async(&signer).now_or_never().ok_or("a local signer must not wait")??;
    let submission = gasless.finish()?.gasless().ok_or("the order has a gasless path")?;
    println!("send to the service: {}", submission.signature);
    Ok(())
}
