//! Tests whether a payout will arrive: the mint, the receiver, and the account that pays the fee.

use countersign::solana::Address;
use countersign::solana::address::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM, associated_token_account};
use countersign::wire::OrderRecord;
use countersign::{
    Code, Policy,
    evidence::{Precondition, Stage},
};
use countersign_node::{Ends, Preconditions, Speed};
use serde_json::json;

use crate::solana::fake::{Account, Chain, FORMS, case, nodes, swap_of, system_account, terms, token_account};

const PAYER: Address = Address::new_from_array([9; 32]);

/// A record whose destination is the swap of a form.
fn record(form: &str) -> OrderRecord {
    let mut record = OrderRecord::from_json(case(form).json()["order"].to_string().as_bytes()).unwrap();
    record.destination_swap = record.source_swap.clone();
    record
}

fn mint(program: Address, decimals: u8, extensions: &[u8]) -> Account {
    let mut data = vec![0; 82];
    (data[44], data[45]) = (decimals, 1);
    if !extensions.is_empty() {
        data.resize(165, 0);
        data.push(1);
        data.extend(extensions);
    }
    Account { lamports: 1, owner: program, data }
}

/// The funded swap, with the accounts that a redemption needs.
fn chain(form: &str) -> Chain {
    let (htlc, swap) = swap_of(&terms(form).destination);
    let mut chain = Chain::funded(&terms(form).destination);
    chain.accounts.insert(PAYER, system_account(10_000_000));
    chain.accounts.insert(swap.redeemer, system_account(1_000_000));
    if let Some(token) = htlc.token {
        let asset = case(form).registry.asset(record(form).destination_swap.asset.as_str()).unwrap();
        chain.accounts.insert(token.mint, mint(TOKEN_PROGRAM, asset.record.decimals, &[]));
    }
    chain
}

async fn ask(chain: Chain, form: &str, stage: Stage) -> Preconditions {
    let (record, policy) = (record(form), Policy::default());
    let account = PAYER.to_string();
    let ends = Ends::of_record(&record, case(form).registry).redeemed_by(Some(&account));
    nodes(chain, 3, form).preconditions(&ends, stage, Speed::Normal, &policy).await
}

fn unmet(found: &Preconditions) -> Vec<(Precondition, &'static str)> {
    found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect()
}

#[tokio::test(start_paused = true)]
async fn everything_holds_on_an_honest_chain() {
    for form in FORMS {
        for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
            let found = ask(chain(form), form, stage).await;
            assert_eq!(unmet(&found), [], "{form} {stage:?}: {:?}", found.unmet);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_receiver_holds_the_secret_back() {
    let form = FORMS[1];
    let (htlc, swap) = swap_of(&terms(form).destination);
    let token = htlc.token.unwrap();
    let paid = associated_token_account(swap.redeemer, token.mint, TOKEN_PROGRAM).unwrap();
    let with = |account: Account| {
        let mut chain = chain(form);
        chain.accounts.insert(paid, account);
        chain
    };
    let open = token_account(token.mint, swap.redeemer, 0);
    let mut frozen = open.clone();
    frozen.data[108] = 2;
    let of_another = token_account(token.mint, Address::from([0x33; 32]), 0);
    for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
        assert_eq!(unmet(&ask(with(open.clone()), form, stage).await), []);
        for account in [&frozen, &of_another] {
            let found = ask(with(account.clone()), form, stage).await;
            assert!(unmet(&found).contains(&(Precondition::Receiver, "receiver_not_payable")), "{stage:?}: {:?}", found.unmet);
        }
        // Two that limit requests say nothing.
        let limited = with(open.clone()).lying(|host, method, _| {
            (host != "c.example" && method == "getMultipleAccounts")
                .then(|| json!({"error": {"code": 429, "message": "Too many requests"}}))
        });
        let found = ask(limited, form, stage).await;
        assert!(unmet(&found).contains(&(Precondition::Receiver, "node_disagree")), "{stage:?}: {:?}", found.unmet);
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_below_its_rent_is_no_receiver() {
    let form = FORMS[0];
    let (_, swap) = swap_of(&terms(form).destination);
    let mut chain = chain(form);
    chain.accounts.remove(&swap.redeemer);
    let mut record = record(form);
    record.destination_swap.amount = countersign::U256::from(890_879);
    let policy = Policy::default();
    let nodes = nodes(chain, 3, form);
    for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
        let found = nodes.preconditions(&Ends::of_record(&record, case(form).registry), stage, Speed::Normal, &policy).await;
        assert_eq!(unmet(&found), [(Precondition::Receiver, "receiver_not_payable")], "an empty account needs 890,880 lamports: {stage:?}");
    }
}

/// The account needs the rent of its own, and the fee of two signatures and of 600,000 units at the price of this moment.
#[tokio::test(start_paused = true)]
async fn the_account_that_redeems_can_pay_the_price_of_this_moment() {
    let form = FORMS[0];
    for (price, fee) in [(0, 10_000), (50_000, 40_000), (9_000_000, 5_410_000)] {
        for (lamports, expected) in [(890_880 + fee - 1, vec![(Precondition::Redeemer, "insufficient_funds")]), (890_880 + fee, vec![])] {
            let mut chain = chain(form);
            chain.fees = vec![price; 150];
            chain.accounts.insert(PAYER, system_account(lamports));
            assert_eq!(unmet(&ask(chain, form, Stage::BeforePaying).await), expected, "{price}");
        }
        let mut record = record(form);
        let account = PAYER.to_string();
        for (payout, expected) in [(fee, vec![(Precondition::Payout, "fee_above_payout")]), (fee + 1, vec![])] {
            let mut chain = chain(form);
            chain.fees = vec![price; 150];
            record.destination_swap.amount = countersign::U256::from(payout);
            let (ends, policy) = (Ends::of_record(&record, case(form).registry).redeemed_by(Some(&account)), Policy::default());
            let found = nodes(chain, 3, form).preconditions(&ends, Stage::BeforePaying, Speed::Normal, &policy).await;
            assert_eq!(
                unmet(&found).into_iter().filter(|(item, _)| *item != Precondition::Redeemer).collect::<Vec<_>>(),
                expected,
                "{payout}"
            );
        }
    }
    // What the policy would refuse at the end is refused before the payment.
    let mut chain = chain(form);
    chain.fees = vec![10_000_001; 150];
    let found = ask(chain, form, Stage::BeforePaying).await;
    assert!(unmet(&found).contains(&(Precondition::Redeemer, "gas_limit_too_high")), "{:?}", found.unmet);
}

#[tokio::test(start_paused = true)]
async fn the_account_that_redeems_has_lamports() {
    for form in FORMS {
        let mut chain = chain(form);
        chain.accounts.insert(PAYER, system_account(900_000));
        assert_eq!(unmet(&ask(chain, form, Stage::BeforePaying).await), [(Precondition::Redeemer, "insufficient_funds")], "{form}");
    }
}

/// The mint is read on both legs, at both stages of the destination.
#[tokio::test(start_paused = true)]
async fn the_mint_is_part_of_what_is_judged() {
    let form = FORMS[1];
    let (htlc, _) = swap_of(&terms(form).destination);
    let mint_of = htlc.token.unwrap().mint;
    let decimals = case(form).registry.asset(record(form).destination_swap.asset.as_str()).unwrap().record.decimals;
    let with = |account: Account| {
        let mut chain = chain(form);
        chain.accounts.insert(mint_of, account);
        chain
    };
    let found = ask(with(mint(TOKEN_PROGRAM, decimals + 1, &[])), form, Stage::BeforePaying).await;
    assert_eq!(unmet(&found), [(Precondition::Decimals, "decimals_differ"); 2], "on both legs");
    // A mint of another program has other token accounts.
    let found = ask(with(mint(TOKEN_2022_PROGRAM, decimals, &[])), form, Stage::BeforeSecret).await;
    assert_eq!(unmet(&found), [(Precondition::Mint, "mint_restricts")]);
    // The result names the authority that may freeze accounts.
    let mut with_authority = mint(TOKEN_PROGRAM, decimals, &[]);
    with_authority.data[46] = 1;
    let found = ask(with(with_authority), form, Stage::BeforePaying).await;
    assert_eq!(unmet(&found), []);
    let (code, said) = &found.warnings[0];
    assert_eq!(*code, Code::MintAuthorities);
    assert!(said.contains("freeze the receiver's account"), "{said}");
}
