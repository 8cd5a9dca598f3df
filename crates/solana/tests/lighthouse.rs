//! Instructions that wallets add: assertions of Lighthouse, and nothing else of it. The numbers of instructions and accounts are those of
//! its source.

use countersign_core::{Code, Role};
use countersign_solana::solana_instruction::{AccountMeta, Instruction};
use countersign_solana::{Address, Solana};
use countersign_testkit::{TestResult, fixture, verified};
use solana_keypair::Signer as _;

use crate::external::{CASES, compiled, compute_budget, decompile, keypair, received, refused, sign};

/// The cases, and those with messages of version 1.
fn cases() -> impl Iterator<Item = &'static str> {
    CASES.into_iter().chain(["solana-v1-native", "solana-v1-token-sponsor-signed"])
}

fn lighthouse(data: &[u8], accounts: &[AccountMeta]) -> Instruction {
    let program_id = "L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95".parse().expect("an address");
    Instruction { program_id, accounts: accounts.to_vec(), data: data.to_vec() }
}

fn read_only(byte: u8) -> AccountMeta {
    AccountMeta::new_readonly(Address::from([byte; 32]), false)
}

/// The lamports of an account are not 1.
pub(crate) fn assertion(account: AccountMeta) -> Instruction {
    lighthouse(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], &[account])
}

#[test]
fn assertions_are_matched_with_a_warning() -> TestResult {
    for id in cases() {
        let case = fixture::<Solana>(id);
        let order = verified::<Solana>(&case);
        let message = received(&order).message;
        let own = decompile(&message);
        let owner = AccountMeta { pubkey: keypair(&case).pubkey(), is_signer: true, is_writable: true };
        // Phantom adds one, Solflare two. An account may be one of the transaction, or another one that is only read.
        let added = [assertion(owner), lighthouse(&[15, 0, 0], &[]), lighthouse(&[4, 0, 0], &[read_only(0x61), read_only(0x62)])];
        for count in 1..=added.len() {
            let transaction = compiled(&case, &message, &[own.as_slice(), &added[..count]].concat(), [3; 32]);
            let (role, warnings) = order.match_with_warnings(&transaction)?;
            assert_eq!((role, order.matches(&transaction)?), (Role::Initiate, Role::Initiate), "{id}");
            let codes: Vec<_> = warnings.list().iter().map(|warning| warning.code()).collect();
            assert_eq!(codes, vec![Code::WalletAssertion; count], "{id}");
            let first = warnings.list()[0].to_string();
            assert!(first.contains(&format!("Lighthouse AssertAccountInfo of {}", keypair(&case).pubkey())), "{first}");
        }
        let mut plain = received(&order);
        sign(&case, &mut plain);
        assert!(order.match_with_warnings(&plain)?.1.list().is_empty(), "{id}");
    }
    Ok(())
}

#[test]
fn every_assertion_has_its_number_of_accounts() {
    let case = fixture::<Solana>("solana-native-legacy");
    let order = verified::<Solana>(&case);
    let message = received(&order).message;
    let own = decompile(&message);
    let all = [0x61, 0x62, 0x63, 0x64].map(read_only);
    for tag in 0..=u8::MAX {
        let needed = match tag {
            2 | 3 | 5..=14 | 17 => Some(1),
            4 => Some(2),
            15 => Some(0),
            16 => Some(3),
            _ => None,
        };
        for count in 0..=all.len() {
            let with = [own.as_slice(), &[lighthouse(&[tag, 0, 0], &all[..count])]].concat();
            let is_matched = order.matches(&compiled(&case, &message, &with, [3; 32])).is_ok();
            assert_eq!(is_matched, Some(count) == needed, "{tag} with {count} accounts");
        }
    }
}

#[test]
fn what_moves_something_or_comes_first_is_refused() -> TestResult {
    for id in cases() {
        let case = fixture::<Solana>(id);
        let order = verified::<Solana>(&case);
        let message = received(&order).message;
        let own = decompile(&message);
        let owner = AccountMeta { pubkey: keypair(&case).pubkey(), is_signer: true, is_writable: true };
        let refusal = |instructions: &[Instruction]| {
            let refusal = order.matches(&compiled(&case, &message, instructions, [3; 32])).expect_err("not the order's");
            assert_eq!(refusal.code(), Code::TransactionMismatch, "{id}");
            (refusal.location().to_owned(), refusal.actual().map(ToString::to_string).unwrap_or_default())
        };
        let after = |added: &[Instruction]| refusal(&[own.as_slice(), added].concat());
        // The accounts of both, in the order of the source.
        let [memory, program] = [AccountMeta::new(Address::from([0x61; 32]), false), read_only(0x62)];
        let system = AccountMeta::new_readonly(Address::default(), false);
        let write = lighthouse(&[0, 0, 0, 0, 0], &[program.clone(), system, owner.clone(), memory.clone(), read_only(0x63)]);
        let close = lighthouse(&[1, 0, 0], &[program, owner.clone(), memory]);
        for (instruction, name) in [(write, "MemoryWrite"), (close, "MemoryClose"), (lighthouse(&[18], &[]), "an unknown instruction")] {
            let named = ("/message/instructions".to_owned(), format!("{name} of the program Lighthouse"));
            assert_eq!(after(&[instruction]), named, "{id}");
        }
        let early = [&[assertion(owner.clone())], own.as_slice()].concat();
        let named = ("/message/instructions/0/program_id".to_owned(), "AssertAccountInfo of the program Lighthouse".to_owned());
        assert_eq!(refusal(&early), named, "{id}");
        let four = vec![assertion(owner.clone()); 4];
        assert_eq!(after(&four).0, format!("/message/instructions/{}", own.len() + 3), "{id}");
        let memo = Instruction { program_id: countersign_solana::address::MEMO_PROGRAM, accounts: Vec::new(), data: b"x".to_vec() };
        assert_eq!(after(&[assertion(owner.clone()), memo]).1, "a memo of the program Memo", "{id}");
        // An account that is written to, or signs, only because of the assertion.
        let mut written = read_only(0x61);
        written.is_writable = true;
        assert_eq!(after(&[assertion(written)]).0, "/message/account_keys", "{id}");
        let mut signer = read_only(0x61);
        signer.is_signer = true;
        assert_eq!(after(&[assertion(signer)]).0, "/message/account_keys", "{id}");
    }
    Ok(())
}

/// Data that no transaction holds must not be serialized.
#[test]
fn an_assertion_is_no_larger_than_a_transaction() {
    let case = fixture::<Solana>("solana-native-legacy");
    let order = verified::<Solana>(&case);
    let mut transaction = received(&order);
    let own = decompile(&transaction.message);
    let owner = AccountMeta { pubkey: keypair(&case).pubkey(), is_signer: true, is_writable: true };
    transaction = compiled(&case, &transaction.message, &[own.as_slice(), &[assertion(owner)]].concat(), [3; 32]);
    let countersign_solana::solana_message::VersionedMessage::Legacy(message) = &mut transaction.message else { panic!("legacy") };
    message.instructions[1].data = [vec![5], vec![0; 100_000]].concat();
    assert_eq!(refused(&order, &transaction), "/message/instructions");
}

/// The sponsor has signed it.
#[test]
fn a_gasless_transaction_takes_no_assertion() -> TestResult {
    let case = fixture::<Solana>("solana-token-sponsor-signed");
    let order = verified::<Solana>(&case);
    let bytes = order.deposit().gasless.as_ref().ok_or("no gasless path")?.bytes();
    let transaction = countersign_solana::received::from_bytes(&bytes)?;
    for added in [assertion(read_only(0x61)), compute_budget(4, &[0, 0, 1, 0])] {
        let own = decompile(&transaction.message);
        let payer = transaction.message.static_account_keys()[0];
        let hash = *transaction.message.recent_blockhash();
        let message =
            countersign_solana::solana_message::Message::new_with_blockhash(&[own.as_slice(), &[added]].concat(), Some(&payer), &hash);
        let mut other = transaction.clone();
        other.message = countersign_solana::solana_message::VersionedMessage::Legacy(message);
        sign(&case, &mut other);
        assert_eq!(refused(&order, &other), "/message");
    }
    Ok(())
}
