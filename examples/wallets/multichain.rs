//! A multichain wallet: one `verify` and one `prepare` for all chains, and one `match` where the chains differ.

use std::error::Error;

use countersign::{Context, CreateOrder, Policy, Proposal, Refusal, U256, Verified, wire::RequestedLeg};
use countersign_examples::{pinned_registry, service};

/// Shows the terms of any order, in the wallet's own layout.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn show(order: &Verified) {
    let terms = order.terms();
    println!("pay      {} on {}", terms.pay, terms.source_chain_title);
    println!("receive  {} on {}", terms.receive, terms.destination_chain_title);
    println!("refund   after {}", terms.timelock.map_or_else(|| "an unknown time".to_owned(), |timelock| timelock.to_string()));
    println!("solver   {}", terms.solver_id.unwrap_or("not pinned"));
    if let Some(severity) = order.warnings().severity() {
        println!("warnings {} ({severity})", order.warnings().list().len());
    }
}

/// Prints what the user has to sign or pay: the gasless path on chains that have one.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn requests(order: &Verified) -> Result<(), Refusal> {
    let list = match (order, Context::gasless(order.family())) {
        (order, Some(gasless)) => order.prepare(&gasless)?.requests().iter().map(ToString::to_string).collect(),
        (Verified::Sui(order), None) => vec![format!("choose gas coins for a kind of {} bytes", order.deposit().kind_bytes().len())],
        (Verified::Bitcoin(order), None) => vec![format!("pay {}", order.deposit().uri())],
        _ => Vec::new(),
    };
    for line in list {
        println!("sign     {line}");
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let (registry, policy) = (pinned_registry(), Policy::default());
    let leg = |asset: &str, owner: &str, amount: u64| -> Result<RequestedLeg, Box<dyn Error>> {
        Ok(RequestedLeg::new(asset.parse()?, owner, U256::from(amount)))
    };
    let requests_to_send = [
        CreateOrder::new(
            leg("arbitrum:wbtc", "0xe5881215c01b9261f3C41bB1E60BDdf321556Ed5", 3_100_000)?,
            leg("bitcoin:btc", "bc1qy8znwzgy8xx68mjv06kfwgwh3jfgptylwhklck", 2_590_000)?,
        )
        .with_secret_hash("0x0be2b009c9927d5e7b5369451166f9ab21ed30d41c7c8aba555c406cfb45e6cf".parse()?),
        CreateOrder::new(
            leg("solana:usdc", "3N2WwtpfWmAtzAgri78enMHU9hMJR187o5dUFAnRrSUk", 1_750_000_000)?,
            leg("bitcoin:btc", "bc1ps8g8s09nx4hf7alc2fk9rfxhuvhq024tl3jp84cefjctenvgejjse6ddl3", 48_515)?,
        )
        .with_secret_hash("0xd30cddecd7caa81b9fb461e77a3489328635cd20f4e7fa5d46ce95e65040a674".parse()?),
        CreateOrder::new(
            leg("bitcoin_testnet:btc", "tb1pjrrcgcfdy7g4myuhnfa507khd7t2wuh04rxgfpjpet5eepp3fq5qvlce5a", 50_000)?,
            leg("base_sepolia:usdc", "0x8B68811FD7257C126E9d6ac074a76C5AE34424c4", 49_000_000)?,
        )
        .with_secret_hash("0x2dbe3df67b8b4a6d6cf1289af19adf99507bdbbe12601025b9a5812071570f2c".parse()?),
    ];
    for request in requests_to_send {
        let response = service::create_order(&request);
        let mut proposal = Proposal::new(&request, response);
        if let Some(record) = service::order(&request) {
            proposal = proposal.with_record(record);
        }
        let order = countersign::verify(proposal, &registry, &policy)?;
        println!("\norder    {} ({})", order.order_id(), order.family());
        show(&order);
        requests(&order)?;
    }

    // A refusal tells the location, the reason, and who has to act.
    let request = CreateOrder::new(
        leg("arbitrum:wbtc", "0xe5881215c01b9261f3C41bB1E60BDdf321556Ed5", 3_099_999)?,
        leg("bitcoin:btc", "bc1qy8znwzgy8xx68mjv06kfwgwh3jfgptylwhklck", 2_590_000)?,
    );
    match countersign::verify(Proposal::new(&request, service::create_order(&request)), &registry, &policy) {
        Ok(_) => return Err("the response pays another amount than this request".into()),
        Err(refusal) => println!("\nrefused  {refusal} (blame: {})", refusal.blame()),
    }
    Ok(())
}
