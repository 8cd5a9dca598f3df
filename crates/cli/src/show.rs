//! Writes the output: JSON for programs, text for people. The text is coloured only on a terminal.

use std::io::{self, Write};
use std::time::SystemTime;

use anstyle::{AnsiColor, Style};
use countersign::{
    Refusal, Severity, Summary, Warnings,
    chains::UnixTime,
    report::{ByteCoverage, Line, OrderStage, Told},
    text,
};
use countersign_json::line::Request;
use countersign_view::hashes::HashCard;
use serde::Serialize;

const LABEL: Style = AnsiColor::Cyan.on_default();
const QUIET: Style = Style::new().dimmed();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const REFUSAL: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();

/// A refused order as JSON.
#[derive(Serialize)]
pub(crate) struct Refused<'a> {
    /// The id of a case; the member is present only for a case.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Option<&'a str>>,
    ok: bool,
    error: Told<'a>,
}

impl<'a> Refused<'a> {
    pub(crate) const fn new(error: &'a Refusal, stage: OrderStage) -> Self {
        Self { id: None, ok: false, error: error.at_stage(stage) }
    }

    pub(crate) const fn case(id: Option<&'a str>, error: &'a Refusal) -> Self {
        Self { id: Some(id), ok: false, error: error.at_stage(OrderStage::BeforePaying) }
    }
}

/// A step that was not taken, or an error that is not a refusal, as JSON.
#[derive(Serialize)]
pub(crate) struct HeldReport<'a> {
    ok: bool,
    error: ErrorReport<'a>,
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct ErrorReport<'a> {
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    /// Each problem on its own, where there can be several.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) problems: &'a [String],
}

impl<'a> HeldReport<'a> {
    pub(crate) const fn new(code: &'a str, message: &'a str, problems: &'a [String]) -> Self {
        Self { ok: false, error: ErrorReport { code, message, problems } }
    }
}

/// Prints one JSON document.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    print_json(serde_json::to_string_pretty(value)?)
}

fn print_json(text: String) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", safe_json(text))
}

pub(crate) use countersign::text::escape_whole as safe;

/// Escapes a line of the argument parser, whose runs of spaces are its layout.
pub(crate) fn safe_layout(line: &str) -> String {
    line.split(' ').map(safe).collect::<Vec<_>>().join(" ")
}

/// Escapes the characters that can forge a display in a JSON document, as JSON does. Outside of strings there are none but line breaks and tabs.
pub(crate) fn safe_json(text: String) -> String {
    if text.lines().all(is_plain) {
        return text;
    }
    let (mut out, mut buffer) = (String::with_capacity(text.len()), [0; 2]);
    for character in text.chars() {
        let is_safe = matches!(character, ' '..='~' | '\n' | '\r' | '\t') || is_plain_character(character);
        if is_safe {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut buffer) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn is_plain_character(character: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = character.encode_utf8(&mut buffer);
    text::escape_untrusted(text) == text
}

/// Prints a summary. With `coverage`, each line is followed by the bytes of the response that it describes.
pub(crate) fn summary(summary: &Summary, coverage: Option<&[ByteCoverage]>) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let mut shown = Vec::new();
    for line in summary.lines() {
        write_line(&mut out, line)?;
        if shown.contains(&line.topic) {
            continue;
        }
        shown.push(line.topic);
        for covered in coverage.unwrap_or_default().iter().filter(|covered| covered.topic == line.topic) {
            let range = covered.bytes.map(|(start, end)| format!("#{start}-{end}")).unwrap_or_default();
            writeln!(out, "{:>16}  {QUIET}{}{range}  {}{QUIET:#}", "", covered.at, covered.what)?;
        }
    }
    Ok(())
}

/// Prints warnings.
pub(crate) fn warnings(warnings: &Warnings) -> io::Result<()> {
    write_warnings(&mut anstream::stdout().lock(), warnings)
}

fn write_line(out: &mut impl Write, line: &Line) -> io::Result<()> {
    writeln!(out, "{LABEL}{:>16}{LABEL:#}  {}", line.topic.title(), safe(&line.text))
}

/// Prints a summary and its warnings on stderr, separate from the data on stdout.
pub(crate) fn summary_on_stderr(summary: &Summary, warnings: &Warnings) -> io::Result<()> {
    let mut out = anstream::stderr().lock();
    for line in summary.lines() {
        write_line(&mut out, line)?;
    }
    write_warnings(&mut out, warnings)
}

/// Prints what stands before a question on stderr: a headline, lines with their labels, and warnings. `has_more` says that `--full` shows more.
pub(crate) fn consent_on_stderr(
    headline: &str,
    lines: &[(&'static str, String)],
    warnings: &[(Severity, String)],
    has_more: bool,
) -> io::Result<()> {
    let mut out = anstream::stderr().lock();
    writeln!(out, "\n{GOOD}{}{GOOD:#}", safe(headline))?;
    for (label, text) in lines {
        writeln!(out, "{LABEL}{label:>16}{LABEL:#}  {}", safe(text))?;
    }
    for (severity, text) in warnings {
        let style = match severity {
            Severity::Danger => REFUSAL,
            Severity::Info => QUIET,
            _ => WARNING,
        };
        writeln!(out, "{style}{:>16}{style:#}  {}", severity.to_string(), safe(text))?;
    }
    if has_more {
        writeln!(out, "{QUIET}{:>16}  ids, hashes, contracts and limits of the order: --full{QUIET:#}", "")?;
    }
    Ok(())
}

/// Prints the sentence of an order on stderr.
pub(crate) fn heading_on_stderr(text: &str) -> io::Result<()> {
    writeln!(anstream::stderr(), "{GOOD}{}{GOOD:#}", safe(text))
}

/// Prints a line on stderr. Best effort: a closed pipe is not an error here.
pub(crate) fn line_on_stderr(text: &str) {
    let _ = writeln!(anstream::stderr(), "{QUIET}{}{QUIET:#}", safe(text));
}

/// Prints a heading and text on stderr. Both must be this program's own.
pub(crate) fn block_on_stderr(heading: &str, text: &str) {
    let _ = writeln!(anstream::stderr(), "{GOOD}{heading}{GOOD:#}{text}");
}

fn write_warnings(out: &mut impl Write, warnings: &Warnings) -> io::Result<()> {
    for warning in warnings.list() {
        writeln!(out, "{WARNING}{:>16}{WARNING:#}  {}: {}", "warning", warning.code(), safe(&warning.message()))?;
    }
    Ok(())
}

/// Prints why an order was refused, and what to do at this stage.
pub(crate) fn refusal(refusal: &Refusal, stage: OrderStage) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{REFUSAL}{:>16}{REFUSAL:#}  {}", "refused", refusal.code())?;
    let at = if refusal.location().is_empty() { "/" } else { refusal.location() };
    writeln!(out, "{LABEL}{:>16}{LABEL:#}  {}", "where", text::quote_whole(at))?;
    writeln!(out, "{LABEL}{:>16}{LABEL:#}  {}", "why", safe(&refusal.at_stage(stage).message()))?;
    if let Some(expected) = refusal.expected() {
        writeln!(out, "{LABEL}{:>16}{LABEL:#}  {}", "expected", safe(&expected.to_string()))?;
    }
    if let Some(actual) = refusal.actual() {
        writeln!(out, "{LABEL}{:>16}{LABEL:#}  {}", "got", actual.quoted())?;
    }
    Ok(())
}

/// Prints the requests to external signers.
pub(crate) fn requests(requests: &[Request]) -> io::Result<()> {
    for request in requests {
        heading(&format!("sign {} with {}", request.id, request.signer))?;
        field("payload", &request.payload.to_string())?;
        field("digest", &request.digest.to_string())?;
    }
    Ok(())
}

/// Prints what devices show of each request, below a heading for each device.
pub(crate) fn hashes(cards: &[HashCard]) -> io::Result<()> {
    for card in cards {
        let mut device = None;
        for value in &card.values {
            if device.replace(value.device) != Some(value.device) {
                heading(&format!("{} on {}", card.request, value.device))?;
            }
            field(value.label, &value.value)?;
        }
    }
    Ok(())
}

/// Prints a heading.
pub(crate) fn heading(text: &str) -> io::Result<()> {
    writeln!(anstream::stdout(), "{GOOD}{}{GOOD:#}", safe(text))
}

/// Prints a heading above something that was not checked completely.
pub(crate) fn careful_heading(text: &str) -> io::Result<()> {
    writeln!(anstream::stdout(), "{WARNING}{}{WARNING:#}", safe(text))
}

/// Prints text without changes. It must be this program's own.
pub(crate) fn raw(text: &str) -> io::Result<()> {
    writeln!(anstream::stdout(), "{text}")
}

/// Prints a label and a value.
pub(crate) fn field(label: &str, value: &str) -> io::Result<()> {
    writeln!(anstream::stdout(), "{LABEL}{:>16}{LABEL:#}  {}", safe(label), safe(value))
}

/// Prints rows below their headings, each column as wide as its widest cell. Cells are truncated and escaped, because they can be
/// untrusted.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    table_with_lines(heads, &rows.iter().map(|row| (row.clone(), Vec::new())).collect::<Vec<_>>())
}

/// Prints the same with lines of this program below each row.
pub(crate) fn table_with_lines(heads: &[&str], rows: &[(Vec<String>, Vec<String>)]) -> io::Result<()> {
    let cells: Vec<Vec<_>> = rows.iter().map(|(row, _)| row.iter().map(|cell| text::escape_untrusted(cell)).collect()).collect();
    let width = |column: usize, head: &str| {
        let cells = cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head.chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<_> = heads.iter().enumerate().map(|(column, head)| width(column, head)).collect();
    let mut out = anstream::stdout().lock();
    let mut line = |cells: &mut dyn Iterator<Item = &str>, style: Style| {
        let padded: Vec<_> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(out, "{style}{}{style:#}", padded.join("  ").trim_end())
    };
    line(&mut heads.iter().copied(), LABEL)?;
    for (row, (_, below)) in cells.iter().zip(rows) {
        line(&mut row.iter().map(String::as_str), Style::new())?;
        below.iter().try_for_each(|text| line(&mut [format!("    {}", safe_layout(text)).as_str()].into_iter(), QUIET))?;
    }
    Ok(())
}

/// Formats a count with its noun: `1 order`, `2 orders`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Returns the current time.
pub(crate) fn now() -> UnixTime {
    SystemTime::now().into()
}

/// Formats a time for display, in UTC.
pub(crate) fn time(time: UnixTime) -> String {
    countersign_client::status::format_time(time)
}

/// Formats a time as people read it: `2026-03-04 05:06 UTC`.
pub(crate) fn clock(at: UnixTime) -> String {
    let whole = time(at);
    match (whole.get(..10), whole.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute} UTC"),
        _ => whole,
    }
}

/// Prints the body of a response. Only characters that can forge a display are written in another way, which means the same.
pub(crate) fn answer(body: &[u8]) -> io::Result<()> {
    print_json(String::from_utf8_lossy(body.trim_ascii_end()).into_owned())
}

/// Prints artefacts as text: every scalar of the JSON value below its path.
pub(crate) fn artefacts(value: &serde_json::Value, path: &str) -> io::Result<()> {
    match value {
        serde_json::Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            artefacts(value, &path)
        }),
        serde_json::Value::Null => Ok(()),
        serde_json::Value::String(text) => writeln!(anstream::stdout(), "{LABEL}{}{LABEL:#}\n  {}", safe(path), safe(text)),
        other => writeln!(anstream::stdout(), "{LABEL}{}{LABEL:#}\n  {other}", safe(path)),
    }
}
