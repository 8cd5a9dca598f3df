//! Cases with one change that a wallet must refuse, and the code that names the change.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Policy, Registry};
use countersign_solana::{Address, Solana, address};
use countersign_testkit::{TestResult, fixture, hostile, outcome_under, registry, registry_json};
use serde_json::json;

/// The published cases, each with the code that it must meet.
const PUBLISHED: [(&str, Code); 11] = [
    ("extra_system_transfer", Code::UnexpectedInstruction),
    ("other_program", Code::UnknownContract),
    ("fee_payer_not_owner", Code::UnexpectedSigner),
    ("amount_changed", Code::AmountMismatch),
    ("durable_nonce", Code::UnexpectedInstruction),
    ("lookup_table", Code::LookupTable),
    ("trailing_bytes", Code::TransactionTrailing),
    ("signature_count_mismatch", Code::SignatureSlots),
    ("spl_approve_appended", Code::UnexpectedInstruction),
    ("gasless_amount_changed", Code::AmountMismatch),
    ("missing_order_id", Code::MissingField),
];

#[test]
fn published_hostile_cases_are_refused() -> TestResult {
    hostile::published_cases_are_refused::<Solana>(&PUBLISHED)
}

/// Without pinned solvers any account may redeem, which is a warning. A program is still refused, because nobody could redeem.
#[test]
fn a_program_is_not_a_redeemer_even_if_no_solver_is_pinned() -> TestResult {
    let mut pins = registry_json();
    pins["solvers"] = json!([]);
    let without_solvers = Registry::from_json(pins.to_string().as_bytes())?;
    let case = fixture::<Solana>("solana-native-legacy");
    let bytes = STANDARD.decode(case.json()["response"]["result"]["versioned_tx"].as_str().ok_or("no transaction")?)?;
    let solvers = registry().solvers_of("solana").iter().chain(registry().solvers_of("solana_testnet"));
    let at = solvers.filter_map(|solver| bytes.windows(32).position(|window| window == solver.account.bytes())).next();
    let at = at.ok_or("no solver redeems")?;
    let outcome = |redeemer: Address| {
        let (mut bytes, mut line) = (bytes.clone(), case.json());
        bytes[at..at + 32].copy_from_slice(redeemer.as_ref());
        line["response"]["result"]["versioned_tx"] = json!(STANDARD.encode(bytes));
        outcome_under::<Solana>(&case.with_input(line.to_string()), &without_solvers, &Policy::default()).map(|_| ())
    };
    for program in ["TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "Stake11111111111111111111111111111111111111"] {
        let refusal = outcome(address::parse(program)?).expect_err(program);
        assert_eq!(refusal.code(), Code::RedeemerInvalid, "{program}: {refusal}");
    }
    assert_eq!(outcome(Address::from([7; 32])), Ok(()));
    Ok(())
}
