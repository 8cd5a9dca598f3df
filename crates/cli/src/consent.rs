//! What a person reads before saying yes: what is agreed to, what it costs, when it can be taken back, who judges the other chain, and what to
//! look at. Everything else is shown with `--full`.

use std::cmp::Reverse;
use std::io::{self, IsTerminal};
use std::time::Duration;

use countersign::recover::Leg;
use countersign::wire::{BasisPoints, Quote, SwapRecord};
use countersign::{
    Code, Family, OrderRecord, Registry, Severity, Summary, U256, Unsigned, Verified, Warnings,
    chains::UnixTime,
    number,
    report::{NetworkFee, Topic},
    text,
};
use countersign_client::status::refund_possible_from;
use countersign_client::{Http, OrderId};
use countersign_node::Nodes;
use countersign_view::Sentence;
use serde::Serialize;

use crate::failure::{Failure, usage};
use crate::session::Session;
use crate::{amount, prompt, show};

/// What stands before a question.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Consent {
    /// What happens after a yes, in one sentence.
    pub(crate) headline: String,
    /// Labels and texts.
    pub(crate) lines: Vec<(&'static str, String)>,
    /// The most serious first.
    pub(crate) warnings: Vec<(Severity, String)>,
}

/// The same for a program, as an event.
#[derive(Serialize)]
struct Shown<'c> {
    event: &'static str,
    headline: &'c str,
    lines: Vec<Line<'c>>,
    warnings: Vec<Remark<'c>>,
}

#[derive(Serialize)]
struct Line<'c> {
    label: &'static str,
    text: &'c str,
}

#[derive(Serialize)]
struct Remark<'c> {
    severity: String,
    message: &'c str,
}

impl Consent {
    /// Shows what stands before a question, as text or as an event. `has_more` says that `--full` shows more.
    fn show(&self, has_more: bool, session: &Session) -> io::Result<()> {
        let Self { headline, lines, warnings } = self;
        if !session.json {
            return show::consent_on_stderr(headline, lines, warnings, has_more);
        }
        let lines = lines.iter().map(|(label, text)| Line { label, text }).collect();
        let warnings = warnings.iter().map(|(severity, message)| Remark { severity: severity.to_string(), message }).collect();
        session.event(&Shown { event: "consent", headline, lines, warnings }, "");
        Ok(())
    }
}

/// A question, and what is true after a no.
pub(crate) struct Question<'q> {
    pub(crate) text: &'q str,
    /// What was not done, what exists, and the command that continues. Ctrl-C says the same.
    pub(crate) after_no: String,
    /// Shows the whole summary too.
    pub(crate) is_full: bool,
}

/// The service's own fee, as its quote states it. What is paid and received are the amounts of the order, in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QuotedFee {
    /// In basis points.
    share: Option<u64>,
    /// A decimal number, whose unit is not documented.
    fixed: Option<String>,
}

impl QuotedFee {
    pub(crate) fn of(quote: &Quote) -> Self {
        Self { share: quote.fee.map(BasisPoints::get), fixed: quote.fixed_fee.clone() }
    }
}

/// What decides that the solver has paid, so that the secret leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judge {
    /// The destination chain, which this program reads, and why its endpoints may show a false answer unnoticed.
    Chain(Option<String>),
    /// The service's word, which the owner has chosen to trust.
    Service,
    /// The owner.
    Owner,
    /// Somebody else, who has the secret.
    Holder,
}

/// A payment that is about to be signed.
pub(crate) struct Payment<'p> {
    pub(crate) order: &'p Verified,
    pub(crate) unsigned: &'p Unsigned,
    pub(crate) registry: &'p Registry,
    /// `None` if this run has not seen the quote.
    pub(crate) quoted: Option<&'p QuotedFee>,
    /// What the chains show beside the warnings of the order.
    pub(crate) found: &'p [(Code, String)],
    pub(crate) judge: Judge,
    pub(crate) now: UnixTime,
    /// Explains every remark, also those that only inform.
    pub(crate) is_full: bool,
}

impl Payment<'_> {
    /// Returns what the owner reads before the payment is signed.
    pub(crate) fn consent(&self) -> Consent {
        let (terms, warnings) = (self.order.terms(), self.unsigned.warnings());
        let mut lines = vec![("fee", self.fee())];
        lines.extend(self.unsigned.summary().about(Topic::Fees).map(|line| ("affiliate", line.text.clone())));
        lines.push(("refund", self.refund()));
        lines.push(("destination", self.judge.said(terms.destination_chain_title)));
        let own = warnings.list().iter().map(|warning| (warning.code(), warning.message()));
        Consent {
            headline: Sentence::new(&terms, warnings).to_string(),
            lines,
            warnings: sorted(own.chain(self.found.iter().cloned()), self.is_full),
        }
    }

    fn fee(&self) -> String {
        let network = match self.unsigned.network_fee() {
            Some(fee) => network(&fee, coin(self.registry, self.order.chain())),
            None => "nothing to the network: others send the payment, or pay for sending it".to_owned(),
        };
        let Some(QuotedFee { share, fixed }) = self.quoted else {
            return format!("{network}; what the service keeps is in the amounts above");
        };
        let share = share.map(|share| format!("{} %", number::in_whole_units(U256::from(share), 2)));
        let fixed = fixed.as_deref().filter(|fixed| *fixed != "0").map(|fixed| format!("a fixed {}", text::quote_untrusted(fixed)));
        let stated: Vec<_> = share.into_iter().chain(fixed).collect();
        let stated = if stated.is_empty() { String::new() } else { format!(": {}, as it states", stated.join(" and ")) };
        format!("{network}; what the service keeps is in the amounts above{stated}")
    }

    fn refund(&self) -> String {
        let Some(timelock) = self.order.terms().timelock else {
            return "it is not known from when and by whom: no record tells the terms of the deposit".to_owned();
        };
        let length = Duration::from_millis(u64::try_from(timelock.nominal_millis).unwrap_or(u64::MAX));
        let from = show::clock(self.now.saturating_add(length));
        let is_theirs = self.unsigned.warnings().list().iter().any(|warning| warning.code() == Code::RefundKeyNotYours);
        match (is_theirs, self.order.family()) {
            (true, _) => format!("only by the service, from about {from} if you pay now: you have no key to it"),
            (false, Family::Bitcoin) => format!("by you with your refund key, from about {from} if you pay now"),
            (false, _) => format!("by you, from about {from} if you pay now; it pays nobody else"),
        }
    }
}

impl Judge {
    /// Returns the judge of a payment: whoever holds the secret, otherwise the chain if it is connected, otherwise `alone`.
    pub(crate) fn new(secret_is_elsewhere: bool, chain: Option<Self>, alone: Self) -> Self {
        if secret_is_elsewhere { Self::Holder } else { chain.unwrap_or(alone) }
    }

    /// Returns the judge that a chain is; `None` if it is not connected.
    pub(crate) fn chain(nodes: &Nodes<Http>, chain: &str) -> Option<Self> {
        Some(Self::Chain(Nodes::endpoints(nodes, chain)?.doubt()))
    }

    fn said(&self, chain: &str) -> String {
        match self {
            Self::Chain(doubt) => {
                let doubt = doubt.as_ref().map(|doubt| format!(" ({doubt})")).unwrap_or_default();
                format!("this program reads {chain} itself: the solver gets your secret only once its payment is final there{doubt}")
            }
            Self::Service => format!(
                "this program does not read {chain}: the solver gets your secret on the service's word (--trust-the-service). If that is a \
                 lie, what you pay is lost"
            ),
            Self::Owner => format!(
                "this program does not read {chain}: you have to check the solver's payment there yourself before you redeem. To have it read, \
                 answer no and pass --node or --nodes"
            ),
            Self::Holder => "somebody else holds the secret, and redeems".to_owned(),
        }
    }
}

/// What the owner reads before the redemption of an order whose request is not stored is printed.
pub(crate) fn restored(record: &OrderRecord, registry: &Registry, now: UnixTime) -> Consent {
    let (source, destination) = (Leg::Source.of(record), Leg::Destination.of(record));
    let shown = |leg: &SwapRecord| amount::shown(leg.amount, &leg.asset, Some(registry));
    let (pays, at) = (shown(destination), text::quote_untrusted(&destination.redeemer));
    let refund = match refund_possible_from(record, Leg::Source, registry) {
        Some(from) if from > now => format!("what you paid can be taken back from about {}, unless somebody redeems it", show::clock(from)),
        Some(_) => "what you paid can be taken back now, unless somebody redeems it".to_owned(),
        None => "it is not known from when what you paid can be taken back".to_owned(),
    };
    Consent {
        headline: format!("Redeem {pays} to {at}, as only the service states it; what you paid for it is {}.", shown(source)),
        lines: vec![
            ("fee", "it is shown with the redemption, which is printed and not sent".to_owned()),
            ("refund", refund),
            (
                "destination",
                "this program has read the chain: it holds what the service states, in a final block. Compare amount and receiver with what you \
                 agreed to"
                    .to_owned(),
            ),
        ],
        warnings: vec![(
            Severity::Danger,
            "whoever sees the redemption has the secret, and with it what you paid: a yes is as good as sending it".to_owned(),
        )],
    }
}

/// Returns the message after a declined payment. It is true even if an approval or an earlier payment of the order was sent.
pub(crate) fn unpaid(id: &OrderId, command: &str) -> String {
    format!(
        "nothing was signed now: order {id} exists, and ends by itself if it is not paid; an approval or a payment that was sent for it before is \
         unchanged; continue with: {command}"
    )
}

/// Returns the symbol of the chain's own coin; `None` if it is not pinned.
fn coin(registry: &Registry, chain: &str) -> Option<String> {
    let native = registry.assets().into_iter().find(|asset| asset.record.id.chain() == chain && asset.token.is_none())?;
    Some(text::escape_untrusted(&native.amount(U256::ZERO).symbol.to_ascii_uppercase()))
}

fn network(fee: &NetworkFee, coin: Option<String>) -> String {
    let symbol = fee.symbol.map(str::to_owned).or(coin).unwrap_or_else(|| "of the chain's own coin".to_owned());
    let beside = fee.beside.map(|beside| format!(", and {beside}")).unwrap_or_default();
    format!("at most {} {symbol} to the network{beside}", fee.whole_units())
}

/// Sorts warnings by severity. Those that only inform become one line, unless all is shown.
fn sorted(all: impl Iterator<Item = (Code, String)>, is_full: bool) -> Vec<(Severity, String)> {
    let (informing, mut shown): (Vec<_>, Vec<_>) = all.partition(|(code, _)| !is_full && code.severity() == Severity::Info);
    shown.sort_by_key(|(code, _)| Reverse(code.severity()));
    let mut shown: Vec<_> = shown.into_iter().map(|(code, message)| (code.severity(), format!("{code}: {message}"))).collect();
    if !informing.is_empty() {
        let names: Vec<_> = informing.iter().map(|(code, _)| code.name()).collect();
        shown.push((Severity::Info, format!("{}; --full explains it", names.join(", "))));
    }
    shown
}

/// Shows what stands before a question, and asks it at the terminal. `whole` is the summary with its warnings, where there is one.
///
/// # Errors
///
/// [`Failure::Held`] with the code `not_confirmed` for any answer but yes; a usage error if nobody can answer.
pub(crate) fn ask(
    consent: &Consent,
    whole: Option<(&Summary, &Warnings)>,
    question: &Question<'_>,
    session: &Session,
) -> Result<(), Failure> {
    show_before(consent, whole, question, session)?;
    let open = Open::new(question, session);
    open.judge(prompt::line(&open.text(), session))
}

/// Does the same, while whatever else runs goes on.
pub(crate) async fn ask_meanwhile(
    consent: &Consent,
    whole: Option<(&Summary, &Warnings)>,
    question: &Question<'_>,
    session: &Session,
) -> Result<(), Failure> {
    show_before(consent, whole, question, session)?;
    let open = Open::new(question, session);
    open.judge(prompt::line_meanwhile(&open.text(), session).await)
}

fn show_before(consent: &Consent, whole: Option<(&Summary, &Warnings)>, question: &Question<'_>, session: &Session) -> Result<(), Failure> {
    let is_terminal = io::stdin().is_terminal();
    if let Some((summary, warnings)) = whole {
        if session.json || !is_terminal {
            session.summary_on_stderr(summary, warnings)?;
        } else if question.is_full {
            show::summary_on_stderr(summary, &Warnings::default())?;
        }
    }
    if !is_terminal {
        return Err(usage("stdin is not a terminal: read the summary, then pass --yes to skip the prompt"));
    }
    Ok(consent.show(whole.is_some() && !question.is_full, session)?)
}

/// A question that is being asked. What the user is told on Ctrl-C at it is true only there, until it is answered or given up.
struct Open<'q> {
    question: &'q Question<'q>,
    session: &'q Session,
    before: Option<String>,
}

impl<'q> Open<'q> {
    fn new(question: &'q Question<'q>, session: &'q Session) -> Self {
        let before = session.advice();
        session.advise(&question.after_no);
        Self { question, session, before }
    }

    fn text(&self) -> String {
        format!("{} [y/N]", self.question.text)
    }

    fn judge(&self, answer: Result<Option<String>, Failure>) -> Result<(), Failure> {
        if answer?.is_some_and(|answer| prompt::is_yes(&answer)) {
            return Ok(());
        }
        Err(Failure::Held { code: "not_confirmed", message: self.question.after_no.clone() })
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.session.advise(self.before.take().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

    use countersign::Policy;
    use countersign::json;
    use countersign_json::line::Case;

    use super::*;

    const NOW: u64 = 1_772_601_000;

    fn fixture(path: &str) -> String {
        std::fs::read_to_string(format!("{}/../../fixtures/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// Returns the consent screen of a fixture.
    fn read(id: &str, quoted: Option<&QuotedFee>, found: &[(Code, String)], judge: Judge, is_full: bool) -> Consent {
        let registry = Registry::from_json(fixture("registry.json").as_bytes()).unwrap();
        let family = id.split('-').next().unwrap();
        let start = format!("{{\"id\":\"{id}\"");
        let text = fixture(&format!("accept/{family}.jsonl"));
        let line = text.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{id}"));
        let line = format!("{}}}", line.split_once(",\"note\":").unwrap().0);
        let value = json::parse(line.as_bytes()).unwrap();
        let case = Case::from_value(&value).unwrap();
        let order = case.verify(&registry, &Policy::default()).unwrap();
        let unsigned = case.prepare(&registry, &Policy::default()).unwrap();
        let now = UnixTime::EPOCH.saturating_add(Duration::from_secs(NOW));
        Payment { order: &order, unsigned: &unsigned, registry: &registry, quoted, found, judge, now, is_full }.consent()
    }

    fn line(consent: &Consent, label: &str) -> String {
        consent.lines.iter().find(|(name, _)| *name == label).unwrap().1.clone()
    }

    #[test]
    fn a_payment_is_one_sentence_its_fee_its_refund_and_its_judge() {
        let quoted = QuotedFee { share: Some(30), fixed: Some("0".to_owned()) };
        let consent = read("evm-record-bitcoin-delegate", Some(&quoted), &[], Judge::Chain(None), false);
        assert!(
            consent
                .headline
                .starts_with("Lock 2500 USDC on Ethereum until a secret is shown; receive at least 0.0259 BTC on Bitcoin at bc1p")
        );
        assert_eq!(
            line(&consent, "fee"),
            "at most 0.009 ETH to the network; what the service keeps is in the amounts above: 0.3 %, as it states"
        );
        // A day later: 7200 blocks.
        assert_eq!(line(&consent, "refund"), "by you, from about 2026-03-05 05:10 UTC if you pay now; it pays nobody else");
        assert!(line(&consent, "destination").starts_with("this program reads Bitcoin itself"), "{consent:?}");
        let ids = ["bb6c3a9b", "df259d9a", "0x3b743557", "swap id"];
        assert!(ids.iter().all(|id| !format!("{consent:?}").contains(id)), "ids are for --full: {consent:?}");
        assert!(1 + consent.lines.len() + consent.warnings.len() <= 8, "{consent:?}");
    }

    #[test]
    fn the_fee_has_the_coin_of_each_chain_and_says_what_is_not_known() {
        for (id, fee) in [
            ("evm-token-approval-exact", "at most 0.0108 ETH to the network, and the L1 data fee; what"),
            ("tron-token-approval-exact", "at most 360 TRX to the network, and what the chain burns"),
            ("solana-native-legacy", "at most 0.000005 SOL to the network, and the rent"),
            ("sui-native", "at most 0.01 SUI to the network; "),
            ("bitcoin-p2wpkh", "at most 0.00000306 BTC to the network; "),
            ("bitcoin-address", "nothing to the network: "),
        ] {
            let said = line(&read(id, None, &[], Judge::Owner, false), "fee");
            assert!(said.starts_with(fee) && said.ends_with("what the service keeps is in the amounts above"), "{id}: {said}");
        }
        let fixed = QuotedFee { share: None, fixed: Some("0.5".to_owned()) };
        let said = line(&read("sui-native", Some(&fixed), &[], Judge::Owner, false), "fee");
        assert!(said.ends_with("above: a fixed 0.5, as it states"), "{said}");
    }

    /// On Bitcoin-like chains the holder of the refund key decides.
    #[test]
    fn who_can_refund_is_said() {
        let theirs = read("bitcoin-p2wpkh", None, &[], Judge::Chain(None), false);
        let said = line(&theirs, "refund");
        assert!(said.starts_with("only by the service") || said.starts_with("it is not known"), "{said}");
        assert!(theirs.warnings.iter().any(|(severity, text)| *severity == Severity::Danger && text.starts_with("refund_key_not_yours")));
    }

    #[test]
    fn warnings_are_sorted_and_only_what_informs_is_shortened() {
        let found = [(Code::FinalityIgnoresValue, "a note".to_owned()), (Code::MintAuthorities, "an authority".to_owned())];
        let short = read("evm-token-approval-unlimited", None, &found, Judge::Owner, false);
        let severities: Vec<_> = short.warnings.iter().map(|(severity, _)| *severity).collect();
        assert!(severities.is_sorted_by(|one, next| one >= next) && severities.last() == Some(&Severity::Info), "{short:?}");
        assert!(short.warnings.last().unwrap().1.contains("finality_ignores_value") && !format!("{short:?}").contains("a note"));
        assert!(short.warnings.iter().any(|(_, text)| text == "mint_authorities: an authority"), "{short:?}");
        let full = read("evm-token-approval-unlimited", None, &found, Judge::Owner, true);
        assert!(full.warnings.iter().any(|(_, text)| text == "finality_ignores_value: a note"), "{full:?}");
    }

    #[test]
    fn who_judges_the_destination_says_what_is_left_to_do() {
        let one = Judge::Chain(Some("a single endpoint".to_owned())).said("Bitcoin");
        assert!(one.starts_with("this program reads Bitcoin itself") && one.ends_with("(a single endpoint)"), "{one}");
        assert!(Judge::Owner.said("Bitcoin").contains("you have to check the solver's payment there yourself"));
        assert!(Judge::Service.said("Bitcoin").contains("on the service's word") && Judge::Holder.said("x").contains("somebody else"));
    }

    #[test]
    fn a_no_says_that_an_order_exists_and_what_continues_it() {
        let id = OrderId::parse(&"ab".repeat(32)).unwrap();
        let said = unpaid(&id, "countersign swap --resume X");
        assert!(said.contains("nothing was signed now") && said.contains(id.as_str()), "{said}");
        // An approval may be out, and an earlier payment may still be mined.
        assert!(said.contains("sent for it before is unchanged") && !said.contains("nothing is owed"), "{said}");
        assert!(said.ends_with("continue with: countersign swap --resume X"), "{said}");
    }

    #[test]
    fn what_is_true_at_a_question_is_said_only_there() {
        let root = clap::Command::new("countersign");
        let matches = root.clone().get_matches_from(["countersign"]);
        let session = Session::new(false, None, root, &matches);
        let question = Question { text: "refund this?", after_no: "nothing was signed".to_owned(), is_full: false };
        for (answer, is_yes) in [(Some("n"), false), (None, false), (Some("y"), true)] {
            session.advise("the first refund may have been sent");
            let open = Open::new(&question, &session);
            assert_eq!(session.advice().as_deref(), Some("nothing was signed"));
            assert_eq!(open.judge(Ok(answer.map(str::to_owned))).is_ok(), is_yes);
            drop(open);
            assert_eq!(session.advice().as_deref(), Some("the first refund may have been sent"));
        }
        assert!(Open::new(&question, &session).judge(Err(usage("stderr is closed"))).is_err());
        assert_eq!(session.advice().as_deref(), Some("the first refund may have been sent"));
    }
}
