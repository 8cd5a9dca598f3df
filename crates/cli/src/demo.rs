//! `countersign demo`: verifies and signs an order of each family, and refuses a tampered copy of its response.

use std::hint::black_box;
use std::time::{Duration, Instant};

use countersign::json;
use countersign::{FAMILIES, Family, Policy, Registry, Unsigned, report::OrderStage};
use countersign_json::Artefacts;

use countersign_json::line::{Case, Outcome};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::exit::OK;
use crate::failure::{Failure, usage};
use crate::session::Session;
use crate::show;

/// The registry of the demo. It and the orders are copies of the fixtures, so that the package is self-contained.
const REGISTRY: &str = include_str!("../demo/registry.json");

macro_rules! cases {
    ([] $($feature:literal $family:ident $module:ident,)*) => {
        /// The cases that are shown for each family, in lines.
        const CASES: &[(Family, &str)] = &[$((Family::$family, include_str!(concat!("../demo/", stringify!($module), ".jsonl")))),*];
    };
}
countersign::for_each_family! { cases! [] }

/// The number of rounds whose median is shown.
const ROUNDS: usize = 201;

/// A case, and a change that an attacker could make to its response.
#[derive(Deserialize)]
struct Shown<'a> {
    /// A part of the response, and what it is changed to: one character or byte of a payload is another, or the address is that of another
    /// order.
    tampered: (String, String),
    /// The line of the fixtures.
    #[serde(borrow)]
    case: &'a RawValue,
}

impl Shown<'_> {
    /// Returns the input part of the line, which ends before the member `note`.
    fn input(&self) -> String {
        self.case.get().split_once(",\"note\":").map_or_else(String::new, |(input, _)| format!("{input}}}"))
    }
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Serialize)]
struct Demonstrated {
    family: &'static str,
    case: String,
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
    for (family, lines) in CASES.iter().filter(|(family, _)| full.is_none_or(|full| full == *family)) {
        for line in lines.lines() {
            let shown: Shown<'_> = serde_json::from_str(line).map_err(usage)?;
            let (input, (part, changed)) = (shown.input(), &shown.tampered);
            all.push(Demonstrated {
                family: family.name(),
                case: serde_json::from_str::<Named>(&input).map_err(usage)?.id,
                signed: signed(&input, &registry, &policy)?,
                micros: measure(&input, &registry, &policy)?,
                tampered: Outcome::from_line(input.replace(part, changed).as_bytes(), &registry, &policy),
            });
        }
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
