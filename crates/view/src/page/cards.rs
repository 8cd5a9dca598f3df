//! The payloads of a response as rows: every leaf of its `result`, with the line of the summary that describes it, and where the order is
//! refused, what was expected.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;

use countersign::json::Value;
use countersign::{
    report::{ByteCoverage, Topic},
    text,
};

use super::Documents;
use super::place::{Payload, Place, find};
use super::rebuild::{Difference, to_json};

/// What belongs together on the page: one payload, or the members around a refused place.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) title: &'static str,
    pub(super) at: String,
    pub(super) rows: Vec<Row>,
}

/// One value or one range of bytes.
#[derive(Debug)]
pub(super) struct Row {
    /// The path below the card, or the offset of the first byte.
    pub(super) label: String,
    pub(super) topic: Option<Topic>,
    /// What it is.
    pub(super) what: String,
    pub(super) actual: Shown,
    /// What was expected, for a row that is refused.
    pub(super) refused: Option<Option<Shown>>,
}

/// A value as the page shows it.
#[derive(Debug)]
pub(super) enum Shown {
    Text(String),
    Bytes(Vec<u8>),
}

/// Leaves that are longer are cut in rows of this many bytes, the width of the words of most chains.
const ROW: usize = 32;
/// The most rows of what is signed, and the most refused rows beyond them. What is left out is counted.
const MAX_ROWS: usize = 600;
/// The most rows of what is not signed, beside those of what is: members that the service may add at will must not push anything off the
/// page.
const MAX_OTHER_ROWS: usize = 60;
/// The most characters or bytes that one value is shown with. No order that is accepted has a longer one.
const MAX_VALUE: usize = 8_192;

/// What is on the page so far.
struct Drawn {
    signed: Cell<usize>,
    other: Cell<usize>,
    refused: Cell<usize>,
    left_out: Cell<usize>,
    /// The most rows of what is not signed.
    max_other: usize,
    /// The differences that have a row, by their place in the list.
    differences: RefCell<BTreeSet<usize>>,
}

impl Drawn {
    /// Without coverage nothing is known to be signed, so everything that was received counts alike.
    fn new(coverage: &[ByteCoverage]) -> Self {
        let max_other = if coverage.is_empty() { MAX_ROWS } else { MAX_OTHER_ROWS };
        Self {
            signed: Cell::default(),
            other: Cell::default(),
            refused: Cell::default(),
            left_out: Cell::default(),
            max_other,
            differences: RefCell::default(),
        }
    }

    fn leave_out(&self) {
        self.left_out.set(self.left_out.get().saturating_add(1));
    }

    fn push(&self, rows: &mut Vec<Row>, mut row: Row, difference: Option<usize>) {
        let (count, max) = match (difference, row.topic) {
            (Some(_), _) => (&self.refused, MAX_ROWS),
            (None, Some(_)) => (&self.signed, MAX_ROWS),
            (None, None) => (&self.other, self.max_other),
        };
        if count.get() >= max {
            return self.leave_out();
        }
        count.set(count.get().saturating_add(1));
        self.differences.borrow_mut().extend(difference);
        row.label = text::escape_untrusted(&row.label);
        row.actual = row.actual.shortened();
        rows.push(row);
    }
}

impl Shown {
    /// Cuts a value that only a hostile document can have, and says so.
    fn shortened(self) -> Self {
        let (start, len) = match &self {
            Self::Text(text) => {
                (text.char_indices().nth(MAX_VALUE).map(|(end, _)| text.get(..end).unwrap_or_default().to_owned()), text.len())
            }
            Self::Bytes(bytes) => (bytes.get(..MAX_VALUE).filter(|_| bytes.len() > MAX_VALUE).map(hex::encode), bytes.len()),
        };
        start.map_or(self, |start| Self::Text(format!("{start}… of {len} bytes")))
    }
}

pub(super) fn cards(documents: Documents<'_>, coverage: &[ByteCoverage], differences: &[Difference]) -> Vec<Card> {
    let mut cards = Vec::new();
    let drawn = Drawn::new(coverage);
    let leaves = Leaves { coverage, differences, base: "", drawn: &drawn };
    let result = find(documents.response, &["result".to_owned()]);
    if let Some(Value::Object(members)) = result {
        let of_result = |title| Card { title, at: "/response/result".to_owned(), rows: Vec::new() };
        let (mut order, mut others) = (of_result("Order"), of_result("Other members of the response"));
        let mut payloads = Vec::new();
        for (key, value) in members {
            let at = format!("/response/result/{}", escape(key));
            let mut card = Card { title: title(key), at: at.clone(), rows: Vec::new() };
            let is_scalar = matches!(value, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_));
            let is_payload = is_scalar && coverage.iter().any(|covered| covered.at == at && covered.bytes.is_some());
            let is_short = is_scalar && !is_payload && Payload::new(value).is_none_or(|payload| payload.bytes.len() <= ROW);
            let to = match is_short {
                true if coverage.is_empty() || leaves.concerns(&at) => &mut order,
                true => &mut others,
                false => &mut card,
            };
            let base = to.at.clone();
            Leaves { base: &base, ..leaves }.add(value, &at, &mut to.rows);
            if !card.rows.is_empty() {
                payloads.push(card);
            }
        }
        if !order.rows.is_empty() {
            cards.push(order);
        }
        cards.extend(payloads);
        if !others.rows.is_empty() {
            cards.push(others);
        }
    }
    for (index, difference) in differences.iter().enumerate() {
        if !drawn.differences.borrow().contains(&index) {
            cards.extend(around(documents, (index, difference), leaves));
        }
    }
    // What is refused comes first, then what is signed.
    let any = |card: &Card, has: fn(&Row) -> bool| card.rows.iter().any(has);
    cards.sort_by_key(|card| (!any(card, |row| row.refused.is_some()), !any(card, |row| row.topic.is_some())));
    // Ranges of a payload stay in the order of their bytes.
    let is_other = |row: &Row| row.topic.is_none() && row.refused.is_none() && matches!(row.actual, Shown::Text(_));
    cards.iter_mut().for_each(|card| card.rows.sort_by_key(is_other));
    if let more @ 1.. = drawn.left_out.get() {
        let actual = Shown::Text(format!("{more} more members or rows"));
        let row = Row { label: String::new(), topic: None, what: "left out".to_owned(), actual, refused: None };
        cards.push(Card { title: "Too long to be shown", at: "/response/result".to_owned(), rows: vec![row] });
    }
    cards
}

const fn title(key: &str) -> &'static str {
    match key.as_bytes() {
        b"approval_transaction" => "Approval",
        b"initiate_transaction" | b"transaction" => "Initiate",
        b"typed_data" => "Gasless message",
        b"versioned_tx" => "Transaction",
        b"versioned_tx_gasless" => "Gasless transaction",
        b"ptb_bytes" => "Programmable transaction",
        _ => "Member of the response",
    }
}

/// Shows the members beside a place that has no row yet: in the record, the request, or missing from the response.
fn around(documents: Documents<'_>, (index, difference): (usize, &Difference), leaves: Leaves<'_>) -> Option<Card> {
    let at = parent(&difference.place.at);
    let (title, root, name) = [
        ("Order record", documents.record, "/order"),
        ("Request", Some(documents.request), "/request"),
        ("Response", Some(documents.response), "/response"),
    ]
    .into_iter()
    .find(|(_, _, name)| difference.place.at.starts_with(name))?;
    let mut card = Card { title, at: at.to_owned(), rows: Vec::new() };
    let keys = Place::new(at).keys_below(name).unwrap_or_default();
    // The lines of the summary describe nothing beside the result.
    let leaves = Leaves { coverage: &[], base: at, ..leaves };
    // Below the result, everything has its rows already.
    let value = root.and_then(|root| find(root, &keys)).filter(|_| !difference.place.at.starts_with("/response/result/"));
    match value {
        Some(Value::Object(members)) => {
            members.iter().for_each(|(key, value)| leaves.add(value, &format!("{at}/{}", escape(key)), &mut card.rows));
        }
        Some(other) => leaves.add(other, at, &mut card.rows),
        None => {}
    }
    if !leaves.drawn.differences.borrow().contains(&index) {
        let label = difference.place.at.strip_prefix(at).unwrap_or(&difference.place.at).trim_start_matches('/').to_owned();
        let actual = Shown::Text(difference.refusal.actual().map_or_else(|| "missing".to_owned(), ToString::to_string));
        let row = Row { label, topic: None, what: String::new(), actual, refused: Some(expected(difference)) };
        leaves.drawn.push(&mut card.rows, row, Some(index));
    }
    Some(card)
}

fn parent(at: &str) -> &str {
    at.rsplit_once('/').map_or(at, |(parent, _)| if parent.is_empty() { at } else { parent })
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn expected(difference: &Difference) -> Option<Shown> {
    match &difference.expected {
        Some(bytes) => Some(Shown::Bytes(bytes.clone())),
        None => difference.refusal.expected().map(|expected| Shown::Text(expected.to_string())),
    }
}

/// Makes a row of every leaf, and of every range of a payload.
#[derive(Clone, Copy)]
struct Leaves<'a> {
    coverage: &'a [ByteCoverage],
    differences: &'a [Difference],
    base: &'a str,
    drawn: &'a Drawn,
}

impl Leaves<'_> {
    fn add(&self, value: &Value<'_>, at: &str, rows: &mut Vec<Row>) {
        let is_refused = self.differences.iter().any(|difference| difference.place.at.starts_with(at));
        if !is_refused && self.drawn.other.get() >= self.drawn.max_other && !self.concerns(at) {
            return self.drawn.leave_out();
        }
        let is_nested = matches!(value, Value::Object(_) | Value::Array(_) | Value::Bytes(_));
        if let Some(covered) = self.covering(at).filter(|_| is_nested && !is_refused) {
            // One summary line describes the whole subtree, so it gets a single row.
            let actual = Shown::Text(to_json(value, &[], "").unwrap_or_default());
            let what = covered.what.to_owned();
            let row = Row { label: self.label(at), topic: Some(covered.topic), what, actual, refused: None };
            return self.drawn.push(rows, row, None);
        }
        match value {
            Value::Object(members) => {
                self.add_whole(at, "object", rows);
                members.iter().for_each(|(key, value)| self.add(value, &format!("{at}/{}", escape(key)), rows));
            }
            Value::Array(items) => {
                self.add_whole(at, "array", rows);
                items.iter().enumerate().for_each(|(index, value)| self.add(value, &format!("{at}/{index}"), rows));
            }
            Value::Null => self.add_whole(at, "null", rows),
            leaf => self.add_leaf(leaf, at, rows),
        }
    }

    /// Returns whether a summary line or a difference is about this place or a part of it.
    fn concerns(&self, at: &str) -> bool {
        let is_part = |place: &str| place.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.covering(at).is_some()
            || self.coverage.iter().any(|covered| is_part(&covered.at))
            || self.differences.iter().any(|difference| is_part(&difference.place.at))
    }

    /// Adds a row for what is refused as a whole and has no value of its own to show.
    fn add_whole(&self, at: &str, what: &str, rows: &mut Vec<Row>) {
        if let Some((index, difference)) = self.whole(at) {
            let refused = Some(expected(difference));
            let row = Row { label: self.label(at), topic: None, what: String::new(), actual: Shown::Text(what.to_owned()), refused };
            self.drawn.push(rows, row, Some(index));
        }
    }

    fn whole(&self, at: &str) -> Option<(usize, &Difference)> {
        self.differences.iter().enumerate().find(|(_, difference)| difference.place.at == at && difference.place.bytes.is_none())
    }

    fn label(&self, at: &str) -> String {
        let label = at.strip_prefix(self.base).unwrap_or(at).trim_start_matches('/');
        label.replace("~1", "/").replace("~0", "~")
    }

    /// Returns what covers a whole member: itself, or an object around it.
    fn covering(&self, at: &str) -> Option<&ByteCoverage> {
        let covers = |covered: &&ByteCoverage| {
            covered.bytes.is_none() && at.strip_prefix(covered.at.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.coverage.iter().filter(covers).max_by_key(|covered| covered.at.len())
    }

    fn add_leaf(&self, leaf: &Value<'_>, at: &str, rows: &mut Vec<Row>) {
        let ranges: Vec<_> =
            self.coverage.iter().filter(|covered| covered.at == at).filter_map(|covered| Some((covered, covered.bytes?))).collect();
        let refused = self.differences.iter().enumerate().filter(|(_, difference)| difference.place.at == at);
        let of_bytes: Vec<_> =
            refused.filter_map(|(index, difference)| Some((index, difference, difference.place.bytes.clone()?))).collect();
        let covering = self.covering(at);
        // A member that a line of the summary describes as a whole is no payload: a long decimal number reads like hex.
        let payload = Payload::new(leaf)
            .filter(|payload| !ranges.is_empty() || !of_bytes.is_empty() || (payload.bytes.len() > ROW && covering.is_none()));
        let Some(payload) = payload else {
            let actual = match leaf {
                Value::String(text) => text.to_string(),
                Value::Number(text) => (*text).to_owned(),
                Value::Bool(is) => is.to_string(),
                _ => String::new(),
            };
            let whole = self.whole(at);
            let row = Row {
                label: self.label(at),
                topic: covering.map(|covered| covered.topic),
                what: covering.map_or("", |covered| covered.what).to_owned(),
                actual: Shown::Text(actual),
                refused: whole.map(|(_, difference)| expected(difference)),
            };
            return self.drawn.push(rows, row, whole.map(|(index, _)| index));
        };
        self.add_whole(at, &format!("payload of {} bytes", payload.bytes.len()), rows);
        let label = text::escape_untrusted(&self.label(at));
        for range in cut(payload.bytes.len(), &ranges, &of_bytes) {
            let Some(bytes) = payload.bytes.get(range.clone()) else { continue };
            let covered = ranges.iter().find(|(_, (start, end))| *start <= range.start && range.end <= *end);
            let difference = of_bytes.iter().find(|(_, _, refused)| refused.start <= range.start && range.end <= refused.end);
            let row = Row {
                label: format!("{label} {}", range.start).trim_start().to_owned(),
                topic: covered.map(|(covered, _)| covered.topic),
                what: covered.map_or("", |(covered, _)| covered.what).to_owned(),
                actual: Shown::Bytes(bytes.to_vec()),
                refused: difference.map(|(_, difference, place)| part(difference, place, &range)),
            };
            self.drawn.push(rows, row, difference.map(|(index, ..)| *index));
        }
    }
}

/// Returns what was expected of a part of a refused range.
fn part(difference: &Difference, place: &Range<usize>, range: &Range<usize>) -> Option<Shown> {
    let Some(bytes) = &difference.expected else { return expected(difference) };
    let (start, end) = (range.start.checked_sub(place.start)?, range.end.checked_sub(place.start)?);
    bytes.get(start..end).map(|bytes| Shown::Bytes(bytes.to_vec()))
}

/// Cuts a payload where a covered or refused range begins or ends. Without any, it is cut into rows.
fn cut(len: usize, covered: &[(&ByteCoverage, (usize, usize))], refused: &[(usize, &Difference, Range<usize>)]) -> Vec<Range<usize>> {
    let mut ends: Vec<usize> = covered.iter().flat_map(|(_, (start, end))| [*start, *end]).collect();
    ends.extend(refused.iter().flat_map(|(_, _, range)| [range.start, range.end]));
    if covered.is_empty() {
        ends.extend((0..len).step_by(ROW));
    }
    ends.extend([0, len]);
    ends.retain(|end| *end <= len);
    ends.sort_unstable();
    ends.dedup();
    ends.windows(2).filter_map(|ends| Some(*ends.first()?..*ends.last()?)).collect()
}
