//! `countersign demo`: verifies and signs an order of each family, and refuses a tampered copy of its response.

use std::hint::black_box;
use std::time::{Duration, Instant};

use countersign::json;
use countersign::{FAMILIES, Family, Policy, Registry, Unsigned, report::OrderStage};
use countersign_json::Artefacts;

use countersign_json::line::{Case, Outcome};
use serde::{Serialize, Serializer};

use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::session::Session;
use crate::show;

/// The registry and the orders of the demo: copies of the fixtures, so that the package is self-contained.
const REGISTRY: &str = include_str!("../demo/registry.json");
const CASES: &str = include_str!("../demo/cases.jsonl");

/// The cases that are shown for each family, and a change that an attacker could make to each.
const EXAMPLES: &[Shown] = &[
    Shown { family: Family::Evm, id: "evm-record-bitcoin-delegate", tamper: |line| one_digit(line, "initiate_transaction") },
    Shown { family: Family::Tron, id: "tron-record-bitcoin-v1", tamper: |line| one_digit(line, "approval_transaction") },
    Shown { family: Family::Starknet, id: "starknet-approval-unlimited", tamper: |line| one_digit(line, "approval_transaction") },
    Shown { family: Family::Solana, id: "solana-native-legacy", tamper: |line| one_letter(line, "versioned_tx") },
    Shown { family: Family::Solana, id: "solana-token-sponsor-signed", tamper: |line| one_letter(line, "versioned_tx") },
    Shown { family: Family::Sui, id: "sui-native", tamper: |line| one_byte(line, "ptb_bytes") },
    Shown { family: Family::Bitcoin, id: "bitcoin-coins-delegate", tamper: |line| other_address(line, "bitcoin-delegate") },
    Shown { family: Family::Bitcoin, id: "bitcoin-every-kind-litecoin", tamper: |line| other_address(line, "bitcoin-delegate-litecoin") },
];

/// The number of rounds whose median is shown.
const ROUNDS: usize = 201;

struct Shown {
    family: Family,
    id: &'static str,
    /// Changes one character or byte of a payload, or replaces its address.
    tamper: fn(&str) -> String,
}

#[derive(Serialize)]
struct Demonstrated<'a> {
    family: &'a str,
    case: &'a str,
    #[serde(serialize_with = "artefacts")]
    signed: Unsigned,
    micros: Micros,
    tampered: Outcome,
}

fn artefacts<S: Serializer>(order: &Unsigned, serializer: S) -> Result<S::Ok, S::Error> {
    Artefacts(order).serialize(serializer)
}

/// Median times, in microseconds.
#[derive(Serialize)]
struct Micros {
    parse_and_verify: f64,
    prepare: f64,
    sign: f64,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Shows everything about the orders of one family: the summary, the signed artefacts, and the refusal of the tampered copy.
    #[arg(long, value_name = "FAMILY")]
    full: Option<String>,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<u8, Failure> {
    let full = match args.full.as_deref() {
        Some(name) => Some(FAMILIES.iter().find(|family| family.name() == name).copied().ok_or_else(|| {
            let names: Vec<_> = FAMILIES.iter().map(|family| family.name()).collect();
            usage(format_args!("unknown family: the families are {}", names.join(", ")))
        })?),
        None => None,
    };
    let registry = Registry::from_json(REGISTRY.as_bytes())?;
    let policy = Policy::default();
    let mut all = Vec::new();
    for shown in EXAMPLES.iter().filter(|shown| FAMILIES.contains(&shown.family) && full.is_none_or(|full| full == shown.family)) {
        let line = line(shown)?;
        all.push(Demonstrated {
            family: shown.family.name(),
            case: shown.id,
            signed: signed(&line, &registry, &policy)?,
            micros: measure(&line, &registry, &policy)?,
            tampered: Outcome::from_line((shown.tamper)(&line).as_bytes(), &registry, &policy),
        });
    }
    if all.iter().any(|one| one.tampered.is_ok()) {
        return Err(usage("the tampered response was accepted: do not use this build"));
    }
    if session.json {
        show::json(&all)?;
        return Ok(OK);
    }
    for one in &all {
        let Err(refusal) = &one.tampered.result else { continue };
        let Micros { parse_and_verify, prepare, sign } = one.micros;
        let times = format!("parse and verify {parse_and_verify:.1} us, prepare {prepare:.1} us, sign {sign:.1} us");
        if full.is_none() {
            show::field(one.family, &format!("verified and signed: {}; {times}", one.case))?;
            show::field("tampered", &format!("refused: {} at {}", refusal.code(), refusal.location()))?;
            continue;
        }
        show::heading(&format!("{}: a verified order, case {}", one.family, one.case))?;
        show::summary(&one.signed.summary(), None)?;
        show::warnings(one.signed.warnings())?;
        show::field("times", &format!("{times} (medians)"))?;
        show::heading(&format!("{}: the signed artefacts", one.family))?;
        show::artefacts(&serde_json::to_value(Artefacts(&one.signed)).map_err(usage)?, "")?;
        show::heading(&format!("{}: the refusal of a tampered copy", one.family))?;
        show::refusal(refusal, OrderStage::BeforePaying)?;
    }
    if full.is_none() {
        session.progress("each tampered response differs in one character or byte, or contains another order's address; times are medians");
        session.progress("countersign demo --full evm shows what is signed, in words and bytes; --json shows all orders in full");
    }
    Ok(OK)
}

/// Returns the input part of a fixture line, which ends before the member `note`.
fn line(shown: &Shown) -> Result<String, Failure> {
    let id = format!("{{\"id\":\"{}\"", shown.id);
    let line = CASES.lines().find(|line| line.starts_with(&id)).and_then(|line| line.split_once(",\"note\":"));
    line.map(|(input, _)| format!("{input}}}")).ok_or_else(|| usage(format_args!("the demo has no case {}", shown.id)))
}

fn signed(line: &str, registry: &Registry, policy: &Policy) -> Result<Unsigned, Failure> {
    let value = json::parse(line.as_bytes())?;
    match Case::from_value(&value)?.run(registry, policy)? {
        (order, true) => Ok(order),
        (_, false) => Err(usage("the demo case has no key")),
    }
}

fn measure(line: &str, registry: &Registry, policy: &Policy) -> Result<Micros, Failure> {
    let (mut verify, mut prepare, mut sign) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let value = json::parse(line.as_bytes())?;
        let case = Case::from_value(&value)?;
        let verified = black_box(case.verify(registry, policy)?);
        verify.push(start.elapsed());

        let wallet = case.wallet()?;
        let start = Instant::now();
        let mut order = black_box(countersign_json::prepare(&verified, wallet)?);
        prepare.push(start.elapsed());

        let key = wallet.object()?.need("secret_key")?.text()?;
        let start = Instant::now();
        countersign_json::sign(&mut order, key)?;
        black_box(&order);
        sign.push(start.elapsed());
    }
    Ok(Micros { parse_and_verify: median(verify), prepare: median(prepare), sign: median(sign) })
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

/// Changes the 48th character of the payload's first long alphanumeric text, such as an address or calldata.
fn one_digit(line: &str, payload: &str) -> String {
    let Some(start) = line.find(&format!("\"{payload}\"")) else { return line.to_owned() };
    let (head, tail) = line.split_at(start);
    let mut digits = 0_u32;
    let mut changed = false;
    let tail: String = tail
        .chars()
        .map(|character| {
            digits = if character.is_ascii_alphanumeric() { digits.saturating_add(1) } else { 0 };
            if digits < 48 || changed {
                return character;
            }
            changed = true;
            if character == '1' { '2' } else { '1' }
        })
        .collect();
    format!("{head}{tail}")
}

/// Changes one letter of a base64 payload, 100 letters before its end. That is part of the last instruction's data; the beginning is the
/// owner's signature slot, which is overwritten anyway.
fn one_letter(line: &str, payload: &str) -> String {
    let Some((head, tail)) = line.split_once(&format!("\"{payload}\":\"")) else { return line.to_owned() };
    let Some((text, rest)) = tail.split_once('"') else { return line.to_owned() };
    let place = text.len().saturating_sub(100);
    let changed: String = text
        .chars()
        .enumerate()
        .map(|(index, letter)| {
            if index != place {
                letter
            } else if letter == 'B' {
                'C'
            } else {
                'B'
            }
        })
        .collect();
    format!("{head}\"{payload}\":\"{changed}\"{rest}")
}

/// Replaces the deposit address with that of another order: a valid address of another HTLC.
fn other_address(line: &str, other: &str) -> String {
    const KEY: &str = "\"to\":\"";
    let address = |line: &str| line.split_once(KEY).and_then(|(_, rest)| rest.split_once('"')).map(|(address, _)| address.to_owned());
    let start = format!("{{\"id\":\"{other}\"");
    let found = CASES.lines().find(|line| line.starts_with(&start)).and_then(address);
    match (address(line), found) {
        (Some(own), Some(found)) => line.replace(&format!("{KEY}{own}"), &format!("{KEY}{found}")),
        _ => line.to_owned(),
    }
}

/// Changes the fifth byte of a payload that is an array of integers. In a Sui transaction kind, that is in the value of the first input.
fn one_byte(line: &str, payload: &str) -> String {
    let Some((head, tail)) = line.split_once(&format!("\"{payload}\":[")) else { return line.to_owned() };
    let changed: Vec<_> = tail
        .split(',')
        .enumerate()
        .map(|(index, byte)| match (index, byte.parse::<u8>()) {
            (4, Ok(byte)) => (byte ^ 1).to_string(),
            _ => byte.to_owned(),
        })
        .collect();
    format!("{head}\"{payload}\":[{}", changed.join(","))
}
