//! Durable nonces that the wallet names. The instruction before the order's own ones is compared with what Solana's libraries compile.

use countersign_core::{Code, Role};
use countersign_solana::recover::{self, Leg};
use countersign_solana::solana_hash::Hash;
use countersign_solana::solana_instruction::{AccountMeta, Instruction};
use countersign_solana::solana_message::VersionedMessage;
use countersign_solana::{Address, DurableNonce, FundingPath, Key, PriorityFee, Solana, TxContext};
use countersign_testkit::recover::record;
use countersign_testkit::{TestResult, fixture, registry, verified};
use solana_keypair::Signer as _;

use crate::external::{compiled, compute_budget, decompile, keypair, received, refused, sign};
use crate::lighthouse::assertion;

const ACCOUNT: [u8; 32] = [0x71; 32];
const VALUE: [u8; 32] = [0x72; 32];

fn nonce() -> DurableNonce {
    DurableNonce::new(Address::from(ACCOUNT), Hash::new_from_array(VALUE))
}

/// As `solana_system_interface::instruction::advance_nonce_account` gives it.
fn advance(authority: Address) -> Instruction {
    let sysvar = "SysvarRecentB1ockHashes11111111111111111111".parse().expect("an address");
    let accounts = vec![
        AccountMeta::new(Address::from(ACCOUNT), false),
        AccountMeta::new_readonly(sysvar, false),
        AccountMeta::new_readonly(authority, true),
    ];
    Instruction { program_id: Address::default(), accounts, data: vec![4, 0, 0, 0] }
}

/// The keys in groups: what an account may do follows from its place.
fn permissions(message: &VersionedMessage) -> Vec<(Address, bool, bool)> {
    let mut all: Vec<_> = decompile(message)
        .into_iter()
        .flat_map(|instruction| {
            let program = (instruction.program_id, false, false);
            instruction
                .accounts
                .into_iter()
                .map(|meta| (meta.pubkey, meta.is_signer, meta.is_writable))
                .chain([program])
                .collect::<Vec<_>>()
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn the_nonce_is_advanced_first_and_nothing_else_changes() -> TestResult {
    let ids = [
        "solana-native-legacy",
        "solana-native-v0",
        "solana-native-keys-reordered",
        "solana-token-legacy",
        "solana-token-v0",
        "solana-v1-native",
        "solana-v1-token",
    ];
    for id in ids {
        let case = fixture::<Solana>(id);
        let order = verified::<Solana>(&case);
        let plain = received(&order).message;
        let owner = keypair(&case).pubkey();
        let all = [&[advance(owner)], decompile(&plain).as_slice()].concat();
        let unsigned = order.prepare(FundingPath::Both(TxContext::new().with_nonce(nonce())))?;
        let message = &unsigned.payloads().transaction.as_ref().ok_or("no transaction")?.transaction().message;
        // Accounts that are written to in one instruction are in all of them, so permissions are compared with those of the library.
        let expected = compiled(&case, &plain, &all, VALUE).message;
        let bare = |instructions: Vec<Instruction>| -> Vec<_> {
            let accounts = |one: Instruction| one.accounts.iter().map(|meta| meta.pubkey).collect::<Vec<_>>();
            instructions.into_iter().map(|one| (one.program_id, one.data.clone(), accounts(one))).collect()
        };
        assert_eq!(bare(decompile(message)), bare(decompile(&expected)), "{id}");
        assert_eq!((permissions(message), message.recent_blockhash()), (permissions(&expected), expected.recent_blockhash()), "{id}");
        assert_eq!(message.header(), expected.header(), "{id}");
        let shown = unsigned.summary().to_string();
        let line =
            format!("the transaction does not expire: it stays valid until the nonce account {} of {owner} is advanced", nonce().account);
        assert!(shown.contains(&line) && shown.contains("(the value of the nonce account)") && !shown.contains("150 blocks"), "{shown}");
        // The gasless transaction stays as the sponsor signed it.
        let gasless = unsigned.payloads().gasless.as_ref().map(|payload| &payload.transaction().message);
        assert_eq!(gasless, order.deposit().gasless.as_ref().map(|gasless| &gasless.decoded.transaction.message), "{id}");

        let with_fee = order.prepare(TxContext::new().with_nonce(nonce()).with_priority_fee(PriorityFee::new(7)))?;
        let message = &with_fee.payloads().transaction.as_ref().ok_or("no transaction")?.transaction().message;
        assert_eq!(decompile(message)[0].data, [4, 0, 0, 0], "{id}: before the fee");
        assert!(PriorityFee::from_message(message).is_some(), "{id}");
    }
    Ok(())
}

#[test]
fn a_signed_transaction_with_a_nonce_has_all_its_signatures() -> TestResult {
    let case = fixture::<Solana>("solana-native-v0");
    let mut unsigned = verified::<Solana>(&case).prepare(TxContext::new().with_nonce(nonce()))?;
    unsigned.sign(&case.secret_key().ok_or("no key")?.parse::<Key>()?)?;
    let signed = unsigned.finish()?;
    let [transaction] = &signed.transactions()[..] else { return Err("one transaction".into()) };
    assert!(transaction.native.verify_with_results().into_iter().all(|valid| valid));
    assert_eq!(transaction.bytes, wincode::serialize(&transaction.native)?);
    Ok(())
}

#[test]
fn the_account_is_not_one_of_the_orders_and_no_blockhash_is_given() -> TestResult {
    let case = fixture::<Solana>("solana-token-legacy");
    let order = verified::<Solana>(&case);
    for key in received(&order).message.static_account_keys() {
        let refusal = order.prepare(TxContext::new().with_nonce(DurableNonce::new(*key, Hash::default()))).expect_err("refused");
        assert_eq!((refusal.code(), refusal.location()), (Code::AccountMismatch, "/nonce_account"));
    }
    let with = || TxContext::new().with_nonce(nonce());
    let heights = with().with_block_heights(5, 4);
    let (mut only_now, mut only_last) = (with(), with());
    (only_now.block_height, only_last.last_valid_block_height) = (heights.block_height, heights.last_valid_block_height);
    for (both, at) in [
        (with().with_blockhash(Hash::default()), "/recent_blockhash"),
        (heights, "/last_valid_block_height"),
        (with().with_block_heights(4, 5), "/last_valid_block_height"),
        (only_now, "/block_height"),
        (only_last, "/last_valid_block_height"),
    ] {
        let refusal = order.prepare(both.clone()).expect_err("refused");
        assert_eq!((refusal.code(), refusal.location()), (Code::UnexpectedField, at));
        let record = record::<Solana>("solana-record-token", |_| {})?;
        let recovery = recover::refund(&record, Leg::Source, registry())?;
        let refusal = recovery.prepare(both.sent_by(Address::from([9; 32]))).expect_err("refused");
        assert_eq!((refusal.code(), refusal.location()), (Code::UnexpectedField, at));
    }
    Ok(())
}

#[test]
fn funds_are_recovered_with_a_nonce() -> TestResult {
    let record = record::<Solana>("solana-record-token", |_| {})?;
    let recovery = recover::refund(&record, Leg::Source, registry())?.with_token_account();
    let key = Key::from_seed(&[9; 32]);
    let unsigned = recovery.prepare(TxContext::new().with_nonce(nonce()).sent_by(key.address()))?;
    let message = &unsigned.payloads().transaction.as_ref().ok_or("no transaction")?.transaction().message;
    let instructions = decompile(message);
    assert_eq!((instructions.len(), &instructions[0].data[..]), (3, &[4, 0, 0, 0][..]));
    assert_eq!(instructions[0].accounts[2].pubkey, key.address());
    assert_eq!(instructions[2].data, recovery.instruction().data);
    assert_eq!(message.recent_blockhash(), &Hash::new_from_array(VALUE));
    Ok(())
}

/// A wallet with a nonce account of the owner's, and the order's own transaction once its signer has sent it.
#[test]
fn a_transaction_with_the_owners_nonce_is_matched() -> TestResult {
    for id in ["solana-native-legacy", "solana-native-v0", "solana-token-sponsor-signed", "solana-v1-native", "solana-v1-token"] {
        let case = fixture::<Solana>(id);
        let order = verified::<Solana>(&case);
        let plain = received(&order).message;
        let (own, owner) = (decompile(&plain), keypair(&case).pubkey());
        let unsigned = order.prepare(TxContext::new().with_nonce(nonce()))?;
        let mut prepared = unsigned.payloads().transaction.as_ref().ok_or("no transaction")?.transaction().clone();
        sign(&case, &mut prepared);
        assert_eq!(order.matches(&prepared)?, Role::Initiate, "{id}");
        // It does not expire, so there is a warning.
        let warned = |instructions: &[Instruction]| {
            let (role, warnings) = order.match_with_warnings(&compiled(&case, &plain, instructions, VALUE)).expect(id);
            assert_eq!(role, Role::Initiate, "{id}");
            warnings.list().iter().map(|warning| (warning.code(), warning.detail().map(str::to_owned))).collect::<Vec<_>>()
        };
        let durable = (Code::WalletNonce, Some(nonce().account.to_string()));
        assert_eq!(warned(&own), [], "{id}");
        let first = [&[advance(owner)], own.as_slice()].concat();
        assert_eq!(warned(&first), std::slice::from_ref(&durable), "{id}");
        // A wallet may assert something of the nonce account, too.
        let asserted = (Code::WalletAssertion, Some(format!("Lighthouse AssertAccountInfo of {}", nonce().account)));
        let of_nonce = assertion(AccountMeta::new_readonly(nonce().account, false));
        assert_eq!(warned(&[first.as_slice(), &[of_nonce]].concat()), [durable, asserted], "{id}");

        let of = |instructions: &[Instruction]| compiled(&case, &plain, instructions, VALUE);
        let changed = |change: fn(&mut Instruction)| {
            let mut other = advance(owner);
            change(&mut other);
            of(&[&[other], own.as_slice()].concat())
        };
        for (place, transaction) in [
            ("/message/instructions/0/program_id", changed(|one| one.data = vec![5, 0, 0, 0])),
            ("/message/instructions/0/program_id", changed(|one| one.data.push(0))),
            ("/message/instructions/0/program_id", changed(|one| one.accounts[2].pubkey = Address::from(ACCOUNT))),
            ("/message/instructions/0/program_id", changed(|one| one.accounts[1].pubkey = Address::from([0x61; 32]))),
            ("/message/instructions/0/program_id", changed(|one| one.accounts.truncate(2))),
            ("/message/instructions/1/program_id", of(&[&[advance(owner), advance(owner)], own.as_slice()].concat())),
            ("/message/instructions", of(&[own.as_slice(), &[advance(owner)]].concat())),
            // An account of the order, and one that is only read.
            ("/message/account_keys", changed(|one| one.accounts[0].pubkey = one.accounts[2].pubkey)),
            ("/message/account_keys", changed(|one| one.accounts[0].is_writable = false)),
        ] {
            assert_eq!(refused(&order, &transaction), place, "{id}");
        }
        if !id.contains("v1") {
            let late = [&[compute_budget(3, &7_u64.to_le_bytes()), advance(owner)], own.as_slice()].concat();
            assert_eq!(refused(&order, &of(&late)), "/message/instructions/1/program_id", "{id}: the network would not find it");
        }
    }
    Ok(())
}
