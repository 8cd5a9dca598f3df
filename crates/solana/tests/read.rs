//! Reading what a chain returns about a swap, in every form of the programs.

use crate::forms;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::SecretHash;
use countersign_solana::address::{SYSTEM_PROGRAM, TOKEN_2022_PROGRAM, TOKEN_PROGRAM};
use countersign_solana::read::{self, ChainInstruction, SwapAccount, SwapEvent, SwapLocation, SwapStep, TransactionRecord};
use countersign_solana::solana_instruction::Instruction;
use countersign_solana::{Address, Solana, address};
use countersign_testkit::{TestResult, fixture, with_verified};
use forms::{AMOUNT, EXPIRY, FORMS, Form, MINT, OWNER, REDEEMER, SPONSOR, TIMELOCK, bytes, key, secret, swap};
use proptest::prelude::*;

#[test]
fn each_layout_is_told_by_its_length() {
    for form in FORMS {
        let stored = read::swap_account(&bytes(form.account)).expect(form.program);
        let SwapAccount { form: stored_form, is_token, initiator, redeemer, secret_hash, amount, expiry, timelock, mint, sponsor, .. } =
            stored;
        assert_eq!((stored_form, is_token), (form.generation.form, form.own.is_some()), "{}", form.program);
        assert_eq!((initiator, redeemer, SecretHash(secret_hash).to_string()), (key(OWNER), key(REDEEMER), forms::SECRET_HASH.to_owned()));
        assert_eq!((amount, expiry), (AMOUNT, EXPIRY));
        assert_eq!(timelock, form.is_audited().then_some(TIMELOCK));
        assert_eq!(mint, (form.is_audited() && is_token).then(|| key(MINT)));
        assert_eq!(sponsor, (form.is_audited() || is_token).then(|| key(form.sponsor)));
    }
}

#[test]
fn another_length_or_discriminator_is_unclear() {
    for form in FORMS {
        let data = bytes(form.account);
        for other in [&data[..data.len() - 1], &[data.as_slice(), &[0]].concat(), &[&[0; 8], &data[8..]].concat(), &data[..0]] {
            assert!(read::swap_account(other).is_err(), "{} {}", form.program, other.len());
        }
    }
    // A timelock that is greater than the expiry slot.
    for (length, timelock) in [(161, 153), (194, 186)] {
        let form = FORMS.iter().find(|form| form.account.len() == 2 * length).expect("a form");
        let mut data = bytes(form.account);
        data[timelock..timelock + 8].fill(0xff);
        assert!(read::swap_account(&data).is_err());
    }
}

/// Each byte of an account belongs to one field, or to a bump.
#[test]
fn every_byte_of_an_account_counts() {
    for form in FORMS {
        let data = bytes(form.account);
        let stored = read::swap_account(&data).expect(form.program);
        let same: Vec<_> = (0..data.len())
            .filter(|index| {
                let mut other = data.clone();
                other[*index] ^= 1;
                read::swap_account(&other) == Ok(stored)
            })
            .collect();
        let bumps: &[usize] = match data.len() {
            161 => &[16],
            153 => &[120],
            194 => &[8, 17],
            _ => &[],
        };
        assert_eq!(same, bumps, "{}", form.program);
    }
}

fn location(form: &Form) -> SwapLocation {
    let location = SwapLocation::from_parts(form.htlc(), swap()).expect("an address");
    assert_eq!(location.swap_account, key(form.swap_account));
    assert_eq!(location.identity.zip(location.vault), form.own.map(|[identity, vault]| (key(identity), key(vault))));
    location
}

fn on_chain(instruction: &Instruction) -> ChainInstruction {
    let keys: Vec<_> = [instruction.program_id].into_iter().chain(instruction.accounts.iter().map(|meta| meta.pubkey)).collect();
    let indexes: Vec<u8> = (1..keys.len()).map(|index| u8::try_from(index).expect("few")).collect();
    ChainInstruction::resolve(&keys, 0, &indexes, instruction.data.clone()).expect("every index is one of a key")
}

#[test]
fn instructions_say_what_happened_to_the_swap() {
    for form in FORMS {
        let (htlc, location, swap) = (form.htlc(), location(&form), swap());
        let sponsor = key(form.sponsor);
        let accounts: Vec<_> = form.accounts(form.initiate).into_iter().map(|(address, ..)| address).collect();
        let keys = [vec![htlc.program], accounts.clone()].concat();
        let indexes: Vec<u8> = (1..=accounts.len()).map(|index| u8::try_from(index).expect("few")).collect();
        let initiate = ChainInstruction::resolve(&keys, 0, &indexes, bytes(form.initiate_data)).expect("an instruction");
        let redeem = on_chain(&htlc.redeem(&swap, sponsor, &secret()).expect("an address"));
        let refund = on_chain(&htlc.refund(&swap, sponsor).expect("an address"));
        let instant = ChainInstruction::resolve(&keys, 0, &indexes, bytes("d3ca6729b7933bfb")).expect("an instruction");

        let mut other_program = redeem.clone();
        other_program.program = SYSTEM_PROGRAM;
        let mut other_swap = redeem.clone();
        other_swap.accounts.rotate_left(1);
        // The program accepts a redemption with more bytes after its arguments, so such a redemption must be recognized too.
        let mut longer = redeem.clone();
        longer.data.push(0);
        let mut shorter = redeem.clone();
        shorter.data.pop();
        let record = TransactionRecord::new(vec![initiate, other_program, other_swap, shorter, longer, redeem, refund, instant]);
        let mint = form.own.map(|_| key(MINT));
        assert_eq!(
            record.steps(&location),
            [
                SwapStep::Initiated { call: form.call(), mint },
                SwapStep::Redeemed { secret: secret() },
                SwapStep::Redeemed { secret: secret() },
                SwapStep::Refunded,
                SwapStep::Refunded
            ],
            "{}",
            form.program
        );
    }
    assert_eq!(ChainInstruction::resolve(&[SYSTEM_PROGRAM], 1, &[], Vec::new()), None);
    assert_eq!(ChainInstruction::resolve(&[SYSTEM_PROGRAM], 0, &[1], Vec::new()), None);
}

#[test]
fn events_show_the_secret() -> TestResult {
    for form in FORMS {
        let [redeemed, refunded, instant] = form.events.map(|event| STANDARD.decode(event).expect("base64"));
        assert_eq!(read::event(&redeemed)?, Some(SwapEvent::Redeemed { initiator: key(OWNER), secret: secret() }), "{}", form.program);
        let secret_hash = swap().secret_hash;
        for event in [refunded, instant] {
            assert_eq!(read::event(&event)?, Some(SwapEvent::Refunded { initiator: key(OWNER), secret_hash }), "{}", form.program);
        }
        assert_eq!(read::event(&STANDARD.decode(form.initiated)?)?, None);
        assert!(read::event(&redeemed[..redeemed.len() - 1]).is_err());
    }
    assert_eq!(read::event(&[])?, None);
    Ok(())
}

#[test]
fn transactions_are_read_to_the_last_byte() -> TestResult {
    let case = fixture::<Solana>("solana-audited-token-legacy");
    let payload = case.json()["response"]["result"]["versioned_tx"].as_str().map(|text| STANDARD.decode(text)).ok_or("no payload")??;
    let transaction = read::transaction(&payload).ok_or("a transaction")?;
    assert_eq!(transaction.message.instructions().len(), 1);
    assert_eq!(read::transaction(&payload[..payload.len() - 1]), None);
    assert_eq!(read::transaction(&[payload.as_slice(), &[0]].concat()), None);
    with_verified::<Solana, ()>(case.input.as_bytes(), case.registry, &countersign_core::Policy::default(), |order, _| {
        assert_eq!(order.deposit().transaction.decoded.transaction, transaction);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn token_accounts_of_both_programs_are_read() {
    let mut data = [key(MINT).as_ref(), key(SPONSOR).as_ref(), &7_u64.to_le_bytes(), &[0; 93]].concat();
    data[108] = 1;
    let account = read::token_account(TOKEN_PROGRAM, &data).expect("a token account");
    assert_eq!((account.mint, account.owner, account.amount, account.is_frozen), (key(MINT), key(SPONSOR), 7, false));
    let longer = [data.as_slice(), &[2, 0, 0]].concat();
    assert_eq!(read::token_account(TOKEN_2022_PROGRAM, &longer), Ok(account));
    assert!(read::token_account(TOKEN_PROGRAM, &longer).is_err());
    assert!(read::token_account(TOKEN_2022_PROGRAM, &[data.as_slice(), &[1]].concat()).is_err(), "a mint");
    assert!(read::token_account(SYSTEM_PROGRAM, &data).is_err());
    assert!(read::token_account(TOKEN_PROGRAM, &data[..164]).is_err());
    data[108] = 2;
    assert!(read::token_account(TOKEN_PROGRAM, &data).is_ok_and(|account| account.is_frozen));
    data[108] = 0;
    assert!(read::token_account(TOKEN_PROGRAM, &data).is_err(), "not initialized");
}

#[test]
fn the_clock_shows_slot_and_time() {
    let mut data = [400_000_000_u64, 1, 2, 3, 1_700_000_000].map(u64::to_le_bytes).concat();
    let clock = read::clock(&data).expect("a clock");
    assert_eq!((clock.slot, clock.time.as_secs()), (400_000_000, 1_700_000_000));
    assert!(read::clock(&data[..39]).is_err());
    data[32..].fill(0xff);
    assert!(read::clock(&data).is_err(), "before 1970");
    assert_eq!(read::CLOCK, address::parse("SysvarC1ock11111111111111111111111111111111").expect("an address"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_decoders_panic(data in proptest::collection::vec(any::<u8>(), 0..300), length in 0..4_usize) {
        let _ = read::swap_account(&data);
        let mut account = data.clone();
        account.resize([120, 161, 153, 194][length], 0);
        account[..8].copy_from_slice(&read::SWAP_ACCOUNT);
        let _ = read::swap_account(&account);
        let _ = (read::event(&data), read::transaction(&data), read::clock(&data), read::token_account(TOKEN_2022_PROGRAM, &data));
        let form = &FORMS[length];
        let keys = [form.htlc().program, key(form.swap_account), key(form.swap_account), Address::default()];
        let instruction = ChainInstruction::resolve(&keys, 0, &[1, 2, 3], data).expect("every index is one of a key");
        let _ = TransactionRecord::new(vec![instruction]).steps(&location(form));
    }
}
