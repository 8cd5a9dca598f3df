//! One change to an accepted order, and the one refusal that it must cause.
//!
//! In `fixtures/reject/<family>.json` each base is accepted, one thing changes, and the refusal has exactly this code at exactly
//! this location. If the change is allowed, the order is still accepted, with a warning. A case that is refused for any other reason
//! proves nothing about its rule, so it fails here.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use countersign::{Code, FAMILIES, Family, Policy, Registry};
use countersign_testkit::lines::{accepted, output, run, warning_codes};
use countersign_testkit::tree::unquoted;
use countersign_testkit::{Case, Tree, project, registry};
use serde_json::Value;

fn fixtures() -> PathBuf {
    project().join("fixtures")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

struct Change {
    id: String,
    base: String,
    remove: Vec<String>,
    set: Vec<(String, Tree)>,
    raw: Vec<(String, String)>,
    registry: Option<Tree>,
    policy: Option<Tree>,
    verdict: Verdict,
}

enum Verdict {
    Refused { code: String, at: String },
    Warned(String),
}

/// Returns the members of an object, or none if the value is not an object.
fn members(tree: Option<&Tree>) -> Vec<(String, Tree)> {
    match tree {
        Some(Tree::Object(members)) => members.iter().map(|(key, value)| (unquoted(key), value.clone())).collect(),
        _ => Vec::new(),
    }
}

fn items(tree: Option<&Tree>) -> Vec<Tree> {
    match tree {
        Some(Tree::Array(items)) => items.clone(),
        _ => Vec::new(),
    }
}

fn texts(tree: Option<&Tree>) -> Vec<String> {
    items(tree).iter().map(|item| item.scalar("").expect("a string")).collect()
}

/// Returns the families of this build that have reject cases.
fn families() -> impl Iterator<Item = Family> {
    FAMILIES.iter().copied().filter(|family| fixtures().join(format!("reject/{}.json", family.name())).is_file())
}

/// Returns the reject cases of a family. The file is only split into tokens, because a JSON parser could round a changed number.
fn changes(family: Family) -> Vec<Change> {
    let file = Tree::parse(&read(&fixtures().join(format!("reject/{}.json", family.name()))));
    items(file.at("/cases"))
        .iter()
        .map(|case| {
            let text = |at: &str| case.scalar(at).unwrap_or_else(|| panic!("{}: no {at}", case.text()));
            Change {
                id: text("/id"),
                base: text("/base"),
                remove: texts(case.at("/remove")),
                set: members(case.at("/set")),
                raw: items(case.at("/raw")).iter().map(|pair| (pair.scalar("/0").unwrap(), pair.scalar("/1").unwrap())).collect(),
                registry: case.at("/registry").cloned(),
                policy: case.at("/policy").cloned(),
                verdict: match case.scalar("/warning") {
                    Some(warning) => Verdict::Warned(warning),
                    None => Verdict::Refused { code: text("/code"), at: text("/at") },
                },
            }
        })
        .collect()
}

fn edit(tree: &mut Tree, remove: &[String], set: &[(String, Tree)]) {
    for at in remove {
        tree.remove(at);
    }
    for (at, value) in set {
        tree.set(at, value.clone());
    }
}

impl Change {
    /// Returns the base line with the change.
    fn line(&self, base: &Case) -> String {
        let mut tree = Tree::parse(&base.input);
        edit(&mut tree, &self.remove, &self.set);
        let mut line = tree.text();
        for (find, replace) in &self.raw {
            assert!(line.contains(find.as_str()), "{}: {find} does not occur", self.id);
            line = line.replace(find.as_str(), replace);
        }
        assert!(
            line != Tree::parse(&base.input).text() || self.registry.is_some() || self.policy.is_some(),
            "{}: nothing changes",
            self.id
        );
        line
    }

    fn run(&self, base: &Case) -> Value {
        let changed = self.registry.as_ref().map(|change| {
            let mut tree = Tree::parse(&read(&fixtures().join("registry.json")));
            edit(&mut tree, &texts(change.at("/remove")), &members(change.at("/set")));
            Registry::from_json(tree.text().as_bytes()).unwrap_or_else(|refusal| panic!("{}: {refusal}", self.id))
        });
        let policy = match &self.policy {
            Some(policy) => Policy::from_json(policy.text().as_bytes()).unwrap_or_else(|refusal| panic!("{}: {refusal}", self.id)),
            None => Policy::default(),
        };
        serde_json::from_str(&output(self.line(base).as_bytes(), changed.as_ref().unwrap_or(registry()), &policy)).unwrap()
    }
}

fn bases(family: Family) -> BTreeMap<String, Case> {
    accepted(family).into_iter().map(|case| (case.id.clone(), case)).collect()
}

#[test]
fn every_change_meets_its_own_refusal_or_warning() {
    let mut wrongs = Vec::new();
    for family in families() {
        let bases = bases(family);
        let mut passed = BTreeMap::new();
        for change in changes(family) {
            let base = bases.get(&change.base).unwrap_or_else(|| panic!("{}: no base {}", change.id, change.base));
            let before = passed.entry(change.base.clone()).or_insert_with(|| run(&base.input));
            assert_eq!(before["ok"], Value::Bool(true), "{}: the base is refused: {}", change.id, before["error"]);
            let got = change.run(base);
            let wrong = match &change.verdict {
                Verdict::Refused { code, at } => {
                    (got["error"]["code"] != **code || got["error"]["at"] != **at).then(|| format!("wanted {code} at {at}"))
                }
                Verdict::Warned(code) => {
                    assert!(!warning_codes(before).contains(&code.as_str()), "{}: the base has the warning already", change.id);
                    (!warning_codes(&got).contains(&code.as_str())).then(|| format!("wanted the warning {code}"))
                }
            };
            if let Some(wrong) = wrong {
                let got = if got["ok"] == Value::Bool(true) {
                    format!("accepted with {:?}", warning_codes(&got))
                } else {
                    format!(
                        "{} at {}, expected {}, got {}",
                        got["error"]["code"], got["error"]["at"], got["error"]["expected"], got["error"]["got"]
                    )
                };
                wrongs.push(format!("{}: {wrong}, got {got}", change.id));
            }
        }
    }
    assert!(wrongs.is_empty(), "{} cases:\n{}", wrongs.len(), wrongs.join("\n"));
}

/// The rules of the source are those of each family, and the rule of the destination is core's: both follow one value.
#[test]
fn a_delegate_is_refused_where_the_family_has_none() {
    for family in families() {
        let is_refused = |change: &Change| match &change.verdict {
            Verdict::Refused { code, at } => code == "delegate_not_supported" && at == "/request/source/delegate",
            Verdict::Warned(_) => false,
        };
        let names_one = |case: &Case| Tree::parse(&case.input).at("/request/source/delegate").is_some_and(|value| value.text() != "null");
        let (refused, accepted) = (changes(family).iter().any(is_refused), bases(family).values().any(names_one));
        assert_eq!((refused, accepted), (!family.has_delegates(), family.has_delegates()), "{family}");
    }
}

#[test]
fn ids_are_unique() {
    let mut seen = BTreeSet::new();
    for change in families().flat_map(changes) {
        assert!(seen.insert(change.id.clone()), "{} occurs twice", change.id);
    }
}

/// A refusal is matched to its line by the id, so the id is returned wherever exactly one can be read.
#[test]
fn a_refusal_carries_the_id_of_its_line() {
    for family in families() {
        let bases = bases(family);
        for change in changes(family) {
            let line = change.line(&bases[&change.base]);
            let id = format!("\"id\":\"{}\"", change.base);
            let got = change.run(&bases[&change.base]);
            // The ids of Tron's permissions are numbers.
            if line.trim_start_matches('\u{feff}').starts_with('{') && line.matches("\"id\":\"").count() == 1 && line.contains(&id) {
                assert_eq!(got["id"], *change.base, "{}", change.id);
            } else {
                assert!(got["id"].is_null(), "{}: {}", change.id, got["id"]);
            }
        }
    }
}

/// The text of a refusal is one line of bounded length without characters that could forge the display, whatever came.
#[test]
fn refusals_can_be_shown() {
    for family in families() {
        let bases = bases(family);
        for change in changes(family) {
            let got = change.run(&bases[&change.base]);
            let texts = ["message", "expected", "got"].map(|member| got["error"][member].as_str().unwrap_or_default().to_owned());
            let shown = got["summary"]
                .as_array()
                .into_iter()
                .flatten()
                .chain(got["warnings"].as_array().into_iter().flatten().map(|w| &w["message"]));
            for text in texts.iter().map(String::as_str).chain(shown.filter_map(Value::as_str)) {
                assert!(!text.chars().any(|c| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')), "{}: {text:?}", change.id);
                assert!(text.chars().count() < 4_000, "{}: {} characters", change.id, text.chars().count());
            }
        }
    }
}

/// Codes that no change of a line can cause, and where they are tested instead. A code that gets a case is removed from this list.
const ELSEWHERE: &[(Code, &str)] = &[
    (Code::JsonNotUtf8, "a JSON file of cases cannot hold it: refuses_bytes_that_are_not_utf_8"),
    (Code::JsonTooLarge, "16 MiB do not belong in a file of cases: refuses_a_line_above_16_mib"),
    (Code::UnknownGeneration, "makes the whole registry unreadable: crates/evm/tests/generations.rs"),
    (Code::CallFormUnknown, "recovery: crates/starknet/tests/generations.rs"),
    (Code::UnsupportedFamily, "depends on which families are built: crates/countersign/tests/api.rs"),
    (Code::SignatureMalformed, "external signatures: crates/evm/tests/sign.rs"),
    (Code::SignatureHighS, "external signatures: crates/sui/tests/sign.rs"),
    (Code::AccountNotDeployed, "external signatures: crates/evm/tests/sign.rs"),
    (Code::SignatureMismatch, "external signatures: crates/evm/tests/sign.rs"),
    (Code::SignatureCount, "external signatures: crates/evm/tests/sign.rs"),
    (Code::ContractSignatureUnverified, "external signatures: crates/evm/tests/sign.rs"),
    (Code::SignatureUnverified, "external signatures: crates/sui/tests/sign.rs"),
    (Code::FundingTxDiffers, "recovery: crates/bitcoin/tests/recover.rs"),
    (Code::SecretForLess, "recovery: crates/bitcoin/tests/recover/rules.rs"),
    (Code::OutputsLeft, "recovery: crates/bitcoin/tests/recover/rules.rs"),
    (Code::PsbtMismatch, "external signatures: crates/bitcoin/tests/sign.rs"),
    (Code::TransactionAboveStandard, "thousands of coins do not belong in a file of cases: crates/bitcoin/tests/coins.rs"),
    (Code::FundingMismatch, "recovery: crates/bitcoin/tests/recover.rs"),
    (Code::InstantRefundMismatch, "recovery: crates/bitcoin/tests/recover/instant.rs"),
    (Code::SighashMismatch, "recovery: crates/bitcoin/tests/recover/instant.rs"),
    (Code::TimeMalformed, "orders under way, or judged at a time: crates/json/tests/rules.rs"),
    (Code::TransactionIdMalformed, "orders under way: crates/json/tests/rules.rs"),
    (Code::OrderExpired, "judged at a time: crates/json/tests/rules.rs"),
    (Code::DeadlineTooClose, "judged at a time: crates/json/tests/rules.rs"),
    (Code::CreatedInFuture, "judged at a time: crates/json/tests/rules.rs"),
    (Code::RecordChanged, "a second record: crates/core/src/evidence/tests.rs"),
    (Code::SecretWrong, "recovery: crates/evm/tests/recover.rs"),
    (Code::SignatureMissing, "the typed API alone: crates/evm/tests/sign.rs"),
    (Code::WalletAssertion, "external wallets: crates/solana/tests/lighthouse.rs"),
    (Code::WalletLockTime, "external wallets: crates/bitcoin/tests/matches.rs"),
    (Code::WalletNonce, "external wallets: crates/solana/tests/nonce.rs"),
    (Code::TransactionMismatch, "external wallets: crates/evm/tests/external.rs"),
    (Code::GasPriceTooHigh, "depends on a node: crates/node/tests/evm_wallet.rs"),
    (Code::AllowanceTooLow, "depends on a node: crates/node/tests/evm_wallet.rs"),
    (Code::SimulationReverted, "depends on a node: crates/node/tests/evm_wallet.rs"),
    (Code::ContractSignatureRefused, "depends on a node: crates/evm/tests/reader/questions.rs"),
    (Code::SimulationDiffers, "depends on a node: crates/node/tests/evm_wallet.rs"),
    (Code::NonceGap, "depends on a node: crates/node/tests/evm_recovery.rs"),
    (Code::FinalityMarkMissing, "depends on a node: crates/node/tests/preconditions.rs"),
    (Code::NodeOutdated, "depends on a node: crates/bitcoin/tests/reader/others.rs"),
    (Code::LowerHeightMissing, "depends on a node: crates/node/tests/preconditions.rs"),
    (Code::DecimalsDiffer, "depends on a node: crates/node/tests/preconditions.rs"),
    (Code::CalldataSuffix, "what external wallets append: crates/evm/tests/external.rs"),
    (Code::PermissionMismatch, "depends on a node: crates/tron/tests/reader/permissions.rs"),
    (Code::ReceiverNotPayable, "depends on a node: crates/node/tests/preconditions.rs"),
    (Code::MintRestricts, "depends on a node: crates/node/tests/solana/payout.rs"),
    (Code::MintAuthorities, "depends on a node: crates/node/tests/solana/payout.rs"),
    (Code::FinalityIgnoresValue, "a driver's warning before it pays: crates/node/tests/preconditions.rs"),
    (Code::SingleProvider, "depends on the endpoints: crates/swap/tests"),
    (Code::FeeAbovePayout, "recoveries only: crates/evm/tests/recover.rs"),
    (Code::Internal, "no input is known that causes it; properties.rs searches for one"),
    (Code::TimelocksDependOnPace, "accepted orders have it: crates/json/tests/rules.rs"),
    (Code::TrustsTheService, "the driver's options, not an order: crates/swap/src/owner/tests.rs"),
    (Code::CannotBeJudged, "what a chain shows before the payment, not an order: crates/client/tests/decide/pay.rs"),
    (Code::PaysTooLittle, "the client's driver compares the order with what its owner accepts"),
];

#[test]
fn every_code_has_a_case_or_a_reason() {
    // A build of some families alone causes only their codes.
    if Family::ALL.iter().any(|family| !FAMILIES.contains(family)) {
        return;
    }
    let shown: BTreeSet<_> = families()
        .flat_map(changes)
        .map(|change| match change.verdict {
            Verdict::Refused { code, .. } => code,
            Verdict::Warned(code) => code,
        })
        .collect();
    let excepted: BTreeSet<_> = ELSEWHERE.iter().map(|(code, _)| code.name().to_owned()).collect();
    let all: BTreeSet<_> = Code::ALL.iter().map(|code| code.name().to_owned()).collect();
    let missing: Vec<_> = all.iter().filter(|code| !shown.contains(*code) && !excepted.contains(*code)).collect();
    assert!(missing.is_empty(), "no case shows {missing:?}");
    let stale: Vec<_> = shown.intersection(&excepted).collect();
    assert!(stale.is_empty(), "{stale:?} have cases and need no exception");
    let unknown: Vec<_> = shown.difference(&all).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not codes");
}

/// Members that only inform: no decision depends on them, and they are not signed.
const INFORMS: [&str; 4] = ["/created_at", "/asset_price", "/destination_swap/initiate_timestamp", "/order/integrator"];

/// Returns a pointer with `*` for every index.
fn general(at: &str) -> String {
    let at = at.split('#').next().unwrap_or_default();
    at.split('/')
        .map(|step| if !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) { "*" } else { step })
        .collect::<Vec<_>>()
        .join("/")
}

/// Every member of a base is changed by some case. Request, envelope and record are read by the same code for every family, so EVM's
/// cases represent all.
#[test]
fn every_member_has_a_case() {
    let own = |at: &str| (at.starts_with("/response/result/") && !at.ends_with("/order_id")) || at.starts_with("/wallet/");
    for family in families() {
        let (bases, changes) = (bases(family), changes(family));
        let mut touched = BTreeSet::new();
        for change in &changes {
            touched.extend(change.remove.iter().chain(change.set.iter().map(|(at, _)| at)).map(|at| general(at)));
            if let Verdict::Refused { at, .. } = &change.verdict {
                touched.insert(general(at));
            }
        }
        let used: BTreeSet<_> = changes.iter().map(|change| change.base.clone()).collect();
        let members: BTreeSet<_> =
            used.iter().flat_map(|base| Tree::parse(&bases[base].input).scalars("")).map(|(at, _)| general(&at)).collect();
        let missing: Vec<_> =
            members.iter().filter(|at| !touched.contains(*at) && !INFORMS.iter().any(|informs| at.ends_with(informs))).collect();
        let missing: Vec<_> = missing.into_iter().filter(|at| family == Family::Evm || own(at)).collect();
        assert!(members.len() > 15, "{family}: only {} members", members.len());
        assert!(missing.is_empty(), "{family}: no case changes {missing:#?}");
    }
}

fn first_case() -> Case {
    accepted(FAMILIES[0]).swap_remove(0)
}

fn refusal(line: &[u8]) -> (String, String, Value) {
    let got: Value = serde_json::from_str(&output(line, registry(), &Policy::default())).unwrap();
    let text = |member: &str| got["error"][member].as_str().unwrap_or_default().to_owned();
    (text("code"), text("at"), got["id"].clone())
}

#[test]
fn refuses_bytes_that_are_not_utf_8() {
    let case = first_case();
    let mut line = case.input.clone().into_bytes();
    let at = case.input.find("\"Ok\"").unwrap() + 1;
    line[at] = 0xff;
    assert_eq!(refusal(&line), ("json_not_utf8".to_owned(), format!("#{at}-{}", at + 1), Value::from(case.id)));
}

#[test]
fn refuses_a_line_above_16_mib() {
    let case = first_case();
    let limit = 16 * 1024 * 1024;
    // Blanks after the object are allowed, up to exactly the limit.
    let fits = format!("{}{}", case.input, " ".repeat(limit - case.input.len()));
    assert_eq!(run(&fits)["ok"], Value::Bool(true));
    let (code, at, id) = refusal(format!("{fits} ").as_bytes());
    assert_eq!((code.as_str(), at.as_str(), id), ("json_too_large", "", Value::from(case.id)));
}

#[test]
fn refuses_what_is_no_object() {
    for (line, code) in [
        (&b"[]"[..], "wrong_type"),
        (b"null", "wrong_type"),
        (b"0", "wrong_type"),
        (b"\"id\"", "wrong_type"),
        (b"{}", "missing_field"),
        (b"", "json_syntax"),
        (b" ", "json_syntax"),
        (b"<html></html>", "json_syntax"),
        (b"\x1f\x8b\x08", "json_not_utf8"),
    ] {
        let (got, _, id) = refusal(line);
        assert_eq!((got.as_str(), id), (code, Value::Null), "{line:?}");
    }
}
