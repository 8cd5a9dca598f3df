//! Tests whether a payout will arrive: the mint, the receiver, and the account that pays the fee.

use countersign::solana::Address;
use countersign::solana::address::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM, associated_token_account};
use countersign::wire::OrderRecord;
use countersign::{
    Code, Policy,
    evidence::{Precondition, Stage},
};
use countersign_node::{Contracts, Ends, Preconditions, Speed};
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

/// A chain on which the program has this code, deployed in this slot by this authority.
fn deployed(form: &str, code: &[u8], slot: u64, authority: u8) -> Chain {
    let (htlc, _) = swap_of(&terms(form).destination);
    let loader: Address = "BPFLoaderUpgradeab1e11111111111111111111111".parse().unwrap();
    let program = [&[2, 0, 0, 0][..], &[0x44; 32]].concat();
    let data = [&[3, 0, 0, 0], slot.to_le_bytes().as_slice(), &[1], &[authority; 32], code].concat();
    let mut chain = chain(form);
    for (address, data) in [(htlc.program, program), (Address::from([0x44; 32]), data)] {
        chain.accounts.insert(address, Account { lamports: 1, owner: loader, data });
    }
    chain
}

/// The authority replaces the program once the order is paid, so that its redemption would fail. Anybody may extend a program, which
/// deploys the same code: that holds nothing back.
#[tokio::test(start_paused = true)]
async fn a_program_that_is_replaced_after_the_payment_holds_the_secret_back() {
    let form = FORMS[0];
    let record = record(form);
    let asset = case(form).registry.asset(record.destination_swap.asset.as_str()).unwrap();
    let mut contracts = Contracts::default();
    contracts.insert(asset, nodes(deployed(form, b"code", 7, 1), 3, form).describe(asset).await.unwrap());
    let ask = async |chain: Chain, stage: Stage| {
        let ends = Ends::of_record(&record, case(form).registry).described(&contracts);
        unmet(&nodes(chain, 3, form).preconditions(&ends, stage, Speed::Normal, &Policy::default()).await)
    };
    for stage in [Stage::BeforeSecret, Stage::BeforeHandingOut] {
        assert_eq!(ask(deployed(form, b"code", 7, 1), stage).await, []);
        assert_eq!(ask(deployed(form, b"code\0\0", 8, 2), stage).await, []);
        for chain in [deployed(form, b"c0de", 8, 1), chain(form)] {
            assert_eq!(ask(chain, stage).await, [(Precondition::Contract, "cannot_be_judged")], "{stage:?}");
        }
        // One endpoint of three neither hides a change nor makes one up, and what nobody shows is no yes.
        for (code, lie, expected) in [(b"c0de", b"code", vec![(Precondition::Contract, "cannot_be_judged")]), (b"code", b"c0de", vec![])] {
            let other = deployed(form, lie, 7, 1);
            let lying = deployed(form, code, 7, 1).lying(move |host, method, params| {
                let call = json!({"id": 0, "method": method, "params": params});
                (host == "a.example").then(|| other.reply_to(host, &call)["result"].take())
            });
            assert_eq!(ask(lying, stage).await, expected, "{stage:?}");
        }
        let silent = deployed(form, b"code", 7, 1).lying(|host, _, params| {
            let is_code = params[0][0] == json!(Address::from([0x44; 32]).to_string());
            (host != "a.example" && is_code).then(|| json!({"error": {"code": 429, "message": "Too many requests"}}))
        });
        assert_eq!(ask(silent, stage).await, [(Precondition::Contract, "node_disagree")], "{stage:?}");
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

/// A new account of Token-2022 has 170 bytes or more, and its payer is asked for the rent of them all: (128 + bytes) * 6,960 lamports.
#[tokio::test(start_paused = true)]
async fn the_account_that_redeems_has_the_rent_of_the_whole_new_account() {
    let form = FORMS[1];
    let token = swap_of(&terms(form).destination).0.token.unwrap();
    for (extensions, length) in [(&[][..], 170), (&[&[1, 0, 108, 0][..], &[0; 108]].concat(), 182)] {
        let needed = 890_880 + 10_000 + (128 + length) * 6_960;
        for (lamports, is_enough) in [(needed, true), (needed - 1, false)] {
            let mut chain = chain(form);
            chain.accounts.insert(token.mint, mint(TOKEN_2022_PROGRAM, 6, extensions));
            chain.accounts.insert(PAYER, system_account(lamports));
            let found = unmet(&ask(chain, form, Stage::BeforePaying).await);
            assert_eq!(!found.contains(&(Precondition::Redeemer, "insufficient_funds")), is_enough, "{length}: {found:?}");
        }
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
