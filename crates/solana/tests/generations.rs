//! The generations of the programs: their bytes, and that no generation is mistaken for another.

use crate::forms;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Family, Policy, Registry};
use countersign_solana::htlc::{self, SolanaGeneration};
use countersign_solana::recover::{self, Leg};
use countersign_solana::solana_hash::Hash;
use countersign_solana::{Address, Solana, TxContext, address};
use countersign_testkit::properties::at;
use countersign_testkit::recover::read_record;
use countersign_testkit::{
    Case, TestResult, asset_index, fixture, fixtures, generation_fixtures, outcome, outcome_under, registry, registry_json,
    registry_of_generation, registry_with,
};
use forms::{FORMS, key, secret, swap};
use serde_json::{Value as Json, json};

const AUDITED: &str = "audited_2025_11";
const OWN: &str = "/response/result/versioned_tx";
const GASLESS: &str = "/response/result/versioned_tx_gasless";

#[test]
fn instructions_are_those_of_the_programs_interfaces() -> TestResult {
    for form in FORMS {
        let (htlc, swap) = (form.htlc(), swap());
        assert_eq!(htlc.swap_account(&swap), Some(key(form.swap_account)), "{}", form.program);
        assert_eq!(form.own.map(|[identity, _]| key(identity)), form.own.and(htlc.identity()));
        assert_eq!(form.own.map(|[_, vault]| key(vault)), htlc.vault());

        let call = form.call();
        assert_eq!(hex::encode(call.encode(&htlc)), form.initiate_data, "{}", form.program);
        if let Some(data) = form.with_destination_data {
            let mut call = call;
            call.destination_data = Some(vec![1, 2, 0xff]);
            assert_eq!(hex::encode(call.encode(&htlc)), data, "{}", form.program);
        }
        let accounts = htlc.initiate_accounts(&swap, key(form.sponsor)).ok_or("no address")?;
        let roles: Vec<_> = accounts.roles.iter().map(|role| (role.address, role.signer, role.writable)).collect();
        assert_eq!(roles, form.accounts(form.initiate), "{}", form.program);

        let redeem = htlc.redeem(&swap, key(form.sponsor), &secret()).ok_or("no address")?;
        let refund = htlc.refund(&swap, key(form.sponsor)).ok_or("no address")?;
        for (instruction, list) in [(&redeem, form.redeem), (&refund, form.refund)] {
            let accounts: Vec<_> = instruction.accounts.iter().map(|meta| (meta.pubkey, meta.is_signer, meta.is_writable)).collect();
            assert_eq!((accounts, instruction.program_id), (form.accounts(list), key(form.program)), "{}", form.program);
        }
        assert_eq!(redeem.data, [htlc::REDEEM.as_slice(), &secret()].concat());
        assert_eq!(refund.data, htlc::REFUND);
    }
    Ok(())
}

/// The case with the registry of another generation; `None` pins none.
fn pinned(case: &Case, generation: Option<&str>) -> Case {
    let registry = generation.map_or_else(registry, |name| registry_of_generation(Family::Solana, name));
    Case { registry, ..case.clone() }
}

#[test]
fn without_a_pin_the_client_generation_is_expected_and_nothing_else() -> TestResult {
    for case in generation_fixtures::<Solana>(AUDITED)? {
        for pin in [None, Some("client_3_1_3")] {
            let refusal = outcome::<Solana>(&pinned(&case, pin)).expect_err(&case.id);
            assert_eq!(refusal.code(), Code::GenerationMismatch, "{}: {refusal}", case.id);
            let named = (refusal.expected().map(ToString::to_string), refusal.actual().map(ToString::to_string));
            assert_eq!(named, (Some("client_3_1_3".to_owned()), Some(AUDITED.to_owned())));
            assert!(refusal.location().starts_with(&format!("{OWN}#")), "{refusal}");
            assert!(refusal.code().remedy().contains("pin"));
        }
    }
    Ok(())
}

#[test]
fn a_pinned_generation_refuses_the_other_one() -> TestResult {
    for case in fixtures::<Solana>()? {
        assert_eq!(outcome::<Solana>(&pinned(&case, Some("client_3_1_3"))), outcome::<Solana>(&case), "{}", case.id);
        let refusal = outcome::<Solana>(&pinned(&case, Some(AUDITED))).expect_err(&case.id);
        assert_eq!(refusal.code(), Code::GenerationMismatch, "{}: {refusal}", case.id);
        assert_eq!(refusal.expected().map(ToString::to_string).as_deref(), Some(AUDITED));
    }
    Ok(())
}

#[test]
fn a_generation_that_is_not_known_makes_the_registry_unreadable_at_that_asset() {
    let index = asset_index("solana_testnet:sol");
    let mut pins = registry_json();
    pins["assets"][index]["htlc"]["generation"] = json!("v3");
    let refusal = Registry::from_json(pins.to_string().as_bytes()).expect_err("a generation of another family");
    assert_eq!(refusal.code(), Code::UnknownGeneration);
    assert_eq!(refusal.location(), format!("/assets/{index}/htlc/generation"));
}

/// The bytes of a payload, changed.
fn changed(case: &Case, pointer: &str, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let mut line = case.json();
    let payload = at(&mut line, pointer);
    let mut bytes = STANDARD.decode(payload.as_str().expect("base64")).expect("base64");
    change(&mut bytes);
    *payload = json!(STANDARD.encode(bytes));
    case.with_input(line.to_string())
}

/// The offset of the data of `initiate`.
fn data_of(case: &Case, pointer: &str) -> usize {
    let line = case.json();
    let bytes = STANDARD.decode(line.pointer(pointer).and_then(Json::as_str).expect("base64")).expect("base64");
    bytes.windows(8).position(|window| window == htlc::INITIATE).expect("initiate")
}

/// The offset of a key.
fn key_at(case: &Case, pointer: &str, key: Address) -> usize {
    let line = case.json();
    let bytes = STANDARD.decode(line.pointer(pointer).and_then(Json::as_str).expect("base64")).expect("base64");
    bytes.windows(32).position(|window| window == key.as_ref()).expect("the key")
}

#[test]
fn every_argument_of_the_audited_form_is_an_order_term() {
    let fields = [
        (8, Code::UnknownRedeemer),
        (40, Code::InitiatorMismatch),
        (72, Code::SecretHashMismatch),
        (104, Code::AmountMismatch),
        // A seed of the swap account.
        (112, Code::AccountMismatch),
        (119, Code::TimelockTooLong),
        (120, Code::InstructionData),
    ];
    for id in ["solana-audited-native-legacy", "solana-audited-token-legacy"] {
        let case = fixture::<Solana>(id);
        let data = data_of(&case, OWN);
        for (field, code) in fields {
            let other = changed(&case, OWN, |bytes| bytes[data + field] ^= 2);
            let refusal = outcome::<Solana>(&other).expect_err(id);
            assert_eq!(refusal.code(), code, "{id} {field}: {refusal}");
            if code != Code::AccountMismatch {
                let (_, range) = refusal.location().split_once('#').expect("bytes");
                let (from, to) = range.split_once('-').expect("a range");
                let (from, to): (usize, usize) = (from.parse().expect("a number"), to.parse().expect("a number"));
                assert!((from..to).contains(&(data + field)), "{id} {field}: {refusal}");
            }
        }
        let zero = changed(&case, OWN, |bytes| bytes[data + 112..data + 120].fill(0));
        assert_eq!(outcome::<Solana>(&zero).expect_err(id).code(), Code::TimelockZero);
    }
}

#[test]
fn the_payloads_of_the_audited_form_agree() {
    for id in ["solana-audited-native-gasless", "solana-audited-token-legacy"] {
        let case = fixture::<Solana>(id);
        let data = data_of(&case, GASLESS);
        let other = changed(&case, GASLESS, |bytes| bytes[data + 112] ^= 2);
        assert_eq!(outcome::<Solana>(&other).expect_err(id).code(), Code::PayloadsDisagree, "{id}");
        let other = changed(&case, GASLESS, |bytes| bytes[data + 40] ^= 2);
        assert_eq!(outcome::<Solana>(&other).expect_err(id).code(), Code::InitiatorMismatch, "{id}");
    }
}

#[test]
fn accounts_and_flags_of_the_audited_form_are_exact() {
    let case = fixture::<Solana>("solana-audited-token-legacy");
    let htlc = &case.registry.asset("solana_testnet:usdc").expect("pinned").htlc;
    let program = htlc.as_ref().and_then(address::from_account).expect("a program");
    let identity = htlc::Htlc::new(program, None).identity().expect("an address");
    let place = key_at(&case, OWN, identity);
    let other = changed(&case, OWN, |bytes| bytes[place] ^= 1);
    assert_eq!(outcome::<Solana>(&other).expect_err("another identity").code(), Code::AccountMismatch);

    // The header has one signer and a count of read-only keys that do not sign. One fewer makes one of them writable.
    let header = 1 + 64;
    for id in ["solana-audited-native-legacy", "solana-audited-token-legacy"] {
        let case = fixture::<Solana>(id);
        for change in [-1_i8, 1] {
            let other = changed(&case, OWN, |bytes| bytes[header + 2] = bytes[header + 2].wrapping_add_signed(change));
            assert_eq!(outcome::<Solana>(&other).expect_err(id).code(), Code::AccountFlags, "{id} {change}");
        }
    }

    // The owner of a gasless native swap is writable, because the locked lamports come from that account.
    let case = fixture::<Solana>("solana-audited-native-gasless");
    let header = 1 + 2 * 64;
    let other = changed(&case, GASLESS, |bytes| bytes[header + 1] = 1);
    assert_eq!(outcome::<Solana>(&other).expect_err("read-only").code(), Code::AccountFlags);
}

#[test]
fn the_rent_sponsor_is_who_pays_and_is_pinned_where_any_is() -> TestResult {
    for id in ["solana-audited-native-gasless", "solana-audited-token-v0-sponsor-signed"] {
        let case = fixture::<Solana>(id);
        let outcome_with = |sponsor: &str| {
            let index = asset_index(case.json()["request"]["source"]["asset"].as_str().expect("an asset"));
            let pins = registry_with(&[
                ("/sponsors", json!([{"chain": "solana_testnet", "address": sponsor}])),
                (&format!("/assets/{index}/htlc/generation"), json!(AUDITED)),
            ]);
            outcome_under::<Solana>(&case, &pins, &Policy::default())
        };
        let sponsor = outcome::<Solana>(&case)?["artefacts"]["gasless"]["signers"][0].as_str().ok_or("no sponsor")?.to_owned();
        let shown = outcome_with(&sponsor)?["summary"].to_string();
        assert!(shown.contains("which is pinned") && shown.contains("generation audited_2025_11: refunds go to "), "{shown}");
        let refusal = outcome_with("43xBoSLkqNfSh46dCb9nN7UMKwj5UZfpp9GNTJFc47u9").expect_err("another sponsor is pinned");
        assert_eq!(refusal.code(), Code::UnknownSponsor);

        // The rent sponsor in the instruction must be the fee payer.
        let data = data_of(&case, GASLESS);
        let line = case.json();
        let bytes = STANDARD.decode(line.pointer(GASLESS).and_then(Json::as_str).ok_or("base64")?)?;
        // The program's index, the count of accounts, and their indexes precede the count of the data.
        let count = if id.contains("native") { 4 } else { 9 };
        let accounts = data - 1 - count;
        let rent_sponsor = accounts + if id.contains("native") { 2 } else { 6 };
        assert_eq!((bytes[accounts - 1], bytes[rent_sponsor]), (u8::try_from(count)?, 0));
        let other = changed(&case, GASLESS, |bytes| bytes[rent_sponsor] = 1);
        assert_eq!(outcome::<Solana>(&other).expect_err("the owner").code(), Code::AccountMismatch);
    }
    Ok(())
}

#[test]
fn the_audited_form_is_recovered_from_its_record() -> TestResult {
    for id in ["solana-audited-native-record", "solana-audited-token-record"] {
        let case = fixture::<Solana>(id);
        let mut order = case.json()["order"].take();
        order["source_swap"]["secret_hash"] = json!(forms::SECRET_HASH);
        order["destination_swap"]["secret_hash"] = json!(forms::SECRET_HASH);
        let record = read_record(&order)?;
        let source = &record.source_swap;
        let (owner, redeemer) = (key(&source.initiator), key(&source.redeemer));
        let asset = case.registry.asset(source.asset.as_str()).ok_or("not pinned")?;
        let account = |text: &str| key(text);
        let token = asset.token.as_ref().map(|token| htlc::Token::new(account(&token.text), address::TOKEN_PROGRAM));
        let program = asset.htlc.as_ref().and_then(address::from_account).ok_or("no program")?;
        let htlc = htlc::Htlc::new(program, token).with_generation(SolanaGeneration::NOVEMBER_2025);
        let amount = u64::try_from(source.amount).map_err(|error| error.to_string())?;
        let swap = htlc::HtlcAccount::new(owner, redeemer, source.secret_hash.0, amount, source.timelock);

        let sponsor = Address::from([8; 32]);
        let refund = recover::refund(&record, Leg::Source, case.registry)?;
        assert_eq!((refund.to(), Some(refund.swap_account())), (owner, htlc.swap_account(&swap)));
        assert_eq!(Some(refund.instruction()), htlc.refund(&swap, owner).as_ref(), "without a sponsor the rent is the owner's");
        assert_eq!(Some(refund.with_sponsor(sponsor).instruction()), htlc.refund(&swap, sponsor).as_ref());
        let redeem = recover::redeem(&record, Leg::Source, &secret(), case.registry)?;
        assert_eq!(redeem.to(), redeemer);
        assert!(!redeem.swap_id_recomputed(), "the formula of the id is not known");
        let warnings = redeem.prepare(TxContext::new().with_blockhash(Hash::default()).sent_by(sponsor)).unwrap();
        assert_eq!(warnings.warnings().list().iter().map(|warning| warning.code()).collect::<Vec<_>>(), [Code::SwapIdUnchecked]);
        assert_eq!(Some(redeem.with_sponsor(sponsor).instruction()), htlc.redeem(&swap, sponsor, &secret()).as_ref());
    }
    Ok(())
}
