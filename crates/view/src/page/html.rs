//! The page itself.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::{
    Blame, Code, Refusal, Severity, Warnings,
    report::{Line, Topic},
};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::cards::{Card, Row, Shown, cards};
use super::legs::{LegView, Legs, timeline};
use super::marks::{Safe, value};
use super::{Page, Prepared};
use crate::sentence::Certainty;

const STYLE: &str = include_str!("style.css");

pub(super) fn page(page: &Page<'_>) -> String {
    let coverage = page.order().map(countersign::Verified::coverage).unwrap_or_default();
    let differences = page.rebuilt.as_ref().map_or(&[][..], |rebuilt| &rebuilt.differences);
    let cards = cards(page.documents, &coverage, differences);
    let summary = match (&page.prepared, page.order()) {
        (Some(prepared), _) => Some(prepared.summary.clone()),
        (None, order) => order.map(countersign::Verified::summary),
    };
    let lines = summary.as_ref().map_or(&[][..], countersign::Summary::lines);
    let style = style(&cards, lines);
    let policy =
        format!("default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'", STANDARD.encode(Sha256::digest(&style)));
    let certainty = page.order().map(|order| Certainty::new(order.warnings())).unwrap_or_default();
    let order_id = page.order().map(|order| order.order_id().to_owned());
    let title = if page.verdict.is_ok() { "Verified order" } else { "Refused order" };
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) @if let Some(id) = &order_id { " " (Safe(id)) } }
                style { (PreEscaped(&style)) }
            }
            body {
                a.skip href="#signed" { "Skip to what is signed" }
                header.top {
                    p { "Order " @if let Some(id) = &order_id { code { (Safe(id)) } } @else { "without a known id" } }
                    p { "Registry " code { (hex::encode(page.registry)) } ", " @if page.has_own_policy { "own policy" } @else { "default policy" } }
                }
                main {
                    @match &page.verdict {
                        Ok(order) => (accepted(page, page.prepared.as_ref().map_or(order.warnings(), |prepared| &prepared.warnings))),
                        Err(refusal) => (refused(page, refusal)),
                    }
                    @if !page.ending.is_empty() {
                        section aria-labelledby="ending" {
                            h2 #ending { "What became of it" }
                            dl.why { @for (label, text) in &page.ending { dt { (Safe(label)) } dd { (Safe(text)) } } }
                        }
                    }
                    @if let Some(legs) = &page.legs { (route(legs, certainty)) }
                    div.columns {
                        section aria-labelledby="says" {
                            h2 #says { @if page.verdict.is_ok() { "What it says" } @else { "What would have been accepted" } }
                            @if lines.is_empty() {
                                p.quiet { "No summary is available, because the order could not be rebuilt from its terms. Do not trust any value on this page." }
                            } @else {
                                dl.facts { @for line in lines { (fact(line)) } }
                            }
                        }
                        section #signed aria-labelledby="bytes" {
                            h2 #bytes { @if page.verdict.is_ok() { "What is signed" } @else { "What was received" } }
                            @for shown in &cards { (card(shown)) }
                            (tree(page))
                            @if let Some(prepared) = &page.prepared { (to_sign(prepared)) }
                        }
                    }
                }
                footer {
                    p { "Made by countersign " (env!("CARGO_PKG_VERSION")) " from the documents of the order. This page runs no script and loads nothing. Point at a line, or move to it with the tab key, to highlight the bytes that it describes." }
                }
            }
        }
    };
    markup.into_string()
}

/// Adds the rules that connect the lines and the bytes of each topic on the page.
fn style(cards: &[Card], lines: &[Line]) -> String {
    let of_rows = cards.iter().flat_map(|card| &card.rows).filter_map(|row| row.topic);
    let topics: BTreeSet<_> = lines.iter().map(|line| line.topic).chain(of_rows).map(name).collect();
    topics.iter().fold(STYLE.to_owned(), |style, name| {
        style
            + &format!(
                "body:has([data-topic={name}]:is(:hover,:focus-visible)) [data-topic={name}]{{--on:1;outline:2px solid var(--accent)}}\n"
            )
    })
}

fn name(topic: Topic) -> String {
    topic.title().replace(' ', "-")
}

fn accepted(page: &Page<'_>, warnings: &Warnings) -> Markup {
    let has_signatures = page
        .prepared
        .as_ref()
        .is_some_and(|prepared| !prepared.requests.is_empty() && prepared.requests.iter().all(|request| request.signature.is_some()));
    // Green is for what was checked on both chains.
    let is_checked = warnings.list().iter().all(|warning| warning.code() != Code::NoOrderRecord);
    html! {
        section.verdict.good[is_checked].partly[!is_checked] aria-labelledby="verdict" {
            p.kicker {
                "Verified: every byte accounted for"
                @if !is_checked { ", but the destination was not checked" }
                @if has_signatures { ", and signed" }
            }
            @if let Some((language, sentence)) = &page.sentence { h1 #verdict lang=(language) { (Safe(sentence)) } }
            @let list = warnings.list();
            @if !list.is_empty() {
                ul.warnings {
                    @for warning in list {
                        li { strong { (warning.code().name().replace('_', " ")) } " " (Safe(&warning.message())) }
                    }
                }
            }
        }
    }
}

fn refused(page: &Page<'_>, refusal: &Refusal) -> Markup {
    let blame = match refusal.blame() {
        Blame::Service => "The service sent it.",
        Blame::Caller => "The wallet's own input is wrong.",
        Blame::Unsupported => "This program cannot judge it.",
        _ => "This is a defect of this program.",
    };
    let others = page.rebuilt.as_ref().map(|rebuilt| rebuilt.differences.as_slice()).and_then(|all| all.get(1..)).unwrap_or_default();
    html! {
        section.verdict.bad aria-labelledby="verdict" {
            p.kicker { "Refused" }
            h1 #verdict { "Do not sign: " (Safe(refusal.reason())) "." }
            p { (blame) " What to do: " (Safe(refusal.remedy())) "." }
            dl.why {
                dt { "code" } dd { code { (refusal.code().name()) } }
                dt { "where" } dd { code { (Safe(if refusal.location().is_empty() { "/" } else { refusal.location() })) } }
                @if let Some(expected) = refusal.expected() { dt { "expected" } dd { code { (Safe(&expected.to_string())) } } }
                @if let Some(actual) = refusal.actual() { dt { "received" } dd { code { (Safe(&actual.to_string())) } } }
            }
            @if !others.is_empty() {
                p { "It differs in more places:" }
                ul.warnings {
                    @for other in others { li { strong { (other.refusal.code().name().replace('_', " ")) } " " code { (Safe(other.refusal.location())) } } }
                }
            }
        }
    }
}

fn route(legs: &Legs, certainty: Certainty) -> Markup {
    let receive = if certainty.payout_is_promised { "The service promises at least" } else { "You receive at least" };
    let refund = if certainty.service_refunds { "only the service can refund, after " } else { "refundable after " };
    let leg = |title: &str, leg: &LegView, note: &str| {
        html! {
            div.leg {
                h2 { (title) " on " (Safe(&leg.chain)) }
                p.amount { (Safe(&leg.amount)) }
                p.quiet {
                    @match &leg.timelock {
                        Some(timelock) => { (note) (timelock.units) " " (timelock.unit()) ", " (super::legs::duration(timelock)) }
                        None => { "timelock not known" }
                    }
                }
            }
        }
    };
    html! {
        section.route aria-label="The two legs" {
            (leg("You lock", &legs.source, refund))
            div.secret {
                svg viewBox="0 0 96 16" aria-hidden="true" { path d="M0 8h92m-8-7 9 7-9 7" {} }
                p { "one secret for both" }
                @if let Some(hash) = &legs.secret_hash { p { "SHA-256 " code { (hash) } } }
            }
            (leg(receive, &legs.destination, "the solver may refund after "))
        }
        @if let Some(drawing) = timeline(legs) { (drawing) }
    }
}

fn fact(line: &Line) -> Markup {
    let topic = name(line.topic);
    let severity = match line.severity {
        Severity::Info => "",
        _ => "look",
    };
    html! {
        div class=(format!("fact {severity} t-{topic}")) data-topic=(topic) tabindex="0" {
            dt { (line.topic.title()) }
            dd { (Safe(&line.text)) }
        }
    }
}

fn card(card: &Card) -> Markup {
    html! {
        article.card {
            header { h3 { (card.title) } code { (Safe(&card.at)) } }
            table {
                thead.hidden { tr { th scope="col" { "place" } th scope="col" { "value" } th scope="col" { "meaning" } } }
                tbody { @for shown in &card.rows { (row(shown)) } }
            }
        }
    }
}

fn row(row: &Row) -> Markup {
    let topic = row.topic.map(name);
    let class = format!(
        "{} {}",
        if row.refused.is_some() { "wrong" } else { "" },
        topic.as_ref().map(|topic| format!("t-{topic}")).unwrap_or_default()
    );
    let is_offset = matches!(row.actual, Shown::Bytes(_));
    let expected = row.refused.as_ref().and_then(Option::as_ref);
    html! {
        tr class=(class.trim()) data-topic=[topic.as_ref()] tabindex="0" {
            th scope="row" class=(if is_offset { "offset" } else { "path" }) { (path(&row.label)) }
            td { code { (value(&row.actual, expected)) } @if row.topic.is_none() && row.refused.is_none() { span.quiet { " not part of what is signed" } } }
            td.what { @if row.refused.is_some() { strong { "refused " } } (Safe(&row.what)) }
        }
        @if let Some(expected) = expected {
            tr.expected {
                td {}
                td { code { (value(expected, Some(&row.actual))) } }
                td.what { "expected" }
            }
        }
    }
}

/// Writes a path that may be broken behind each slash.
fn path(path: &str) -> Markup {
    html! {
        @for (index, part) in path.split_inclusive('/').enumerate() {
            @if index > 0 { wbr; }
            (Safe(part))
        }
    }
}

fn to_sign(prepared: &Prepared) -> Markup {
    html! {
        @for request in &prepared.requests {
            article.card {
                header { h3 { "To sign: " (request.id) } span.quiet { (request.scheme) } }
                dl.why {
                    dt { "signer" } dd { code { (Safe(&request.signer)) } }
                    dt { "digest" } dd { code { (request.digest) } }
                    @if let Some(signature) = &request.signature { dt { "signature" } dd { code { (Safe(signature)) } } }
                    @else { dt { "signature" } dd.quiet { "none yet" } }
                }
            }
        }
        @for card in prepared.cards.iter().filter(|card| !card.values.is_empty()) {
            article.card {
                header { h3 { "On a device: " (card.request) } span.quiet { "compare with its screen, where it does not decode the payload" } }
                dl.why {
                    @for shown in &card.values {
                        dt { (shown.device.name()) br; (shown.label) }
                        dd { code { (Safe(&shown.value)) } }
                    }
                }
            }
        }
    }
}

/// Shows the script tree behind a deposit address.
#[cfg(feature = "bitcoin")]
fn tree(page: &Page<'_>) -> Markup {
    use countersign::bitcoin::htlc::{Leaf, Tree};

    let Some(countersign::Verified::Bitcoin(order)) = page.order() else { return html! {} };
    let Some(tree): Option<&Tree> = order.deposit().tree.as_ref() else { return html! {} };
    let leaves = [
        (Leaf::Redeem, "Redeem: the solver, with the secret"),
        (Leaf::Refund, "Refund: the refund key, after the timelock"),
        (Leaf::InstantRefund, "Instant refund: both keys together"),
    ];
    html! {
        article.card {
            header { h3 { "Script tree of the address" } code { (Safe(&order.deposit().address)) } }
            dl.why {
                dt { "internal key" } dd { code { (hex::encode(tree.htlc.internal_key)) } " the pinned key, which nobody can sign with" }
                @for (leaf, title) in leaves {
                    @let script = tree.script(leaf);
                    dt { (title) }
                    dd { code { (script.to_asm_string()) } br; span.quiet { "leaf hash " code { (tree.leaf_hash(leaf)) } } }
                }
                dt { "output key" } dd { code { (hex::encode(tree.output.key)) } }
            }
        }
    }
}

#[cfg(not(feature = "bitcoin"))]
fn tree(_: &Page<'_>) -> Markup {
    html! {}
}
