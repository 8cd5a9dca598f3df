//! The user's own files: what is wrong with one, in which line, and what to write in its place.

use std::path::Path;

use countersign::{Code, Refusal};

use crate::failure::{Failure, usage};
use crate::files;

/// Reads one of the user's own files, or stdin for `-`, and parses it.
///
/// # Errors
///
/// The file cannot be read; or what is wrong with it, as [`wrong`] says it.
pub(crate) fn parse<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T, Refusal>) -> Result<T, Failure> {
    let text = files::read(path)?;
    parse(&text).map_err(|refusal| wrong(path, &text, &refusal))
}

/// Returns the failure for one of the user's own files that is invalid: its name, the line and column, what is wrong, and what is expected.
/// Without advice, which would be that for the documents of an order.
fn wrong(path: &Path, text: &[u8], refusal: &Refusal) -> Failure {
    usage(below(path, text, "", refusal))
}

/// Returns the same as a message, for a refusal whose location has a prefix in front of the file's own.
pub(crate) fn below(path: &Path, text: &[u8], prefix: &str, refusal: &Refusal) -> String {
    format!("{}{}", path.display(), described(text, refusal, prefix))
}

/// Returns where a location of a file is: its name, line and column. A file that cannot be read any more has only its name.
pub(crate) fn place(path: &Path, location: &str) -> String {
    let place = files::read(path).map(|text| line_and_column(&text, offset(&text, location, false)));
    format!("{}{}", path.display(), place.unwrap_or_default())
}

/// Says where in a text a refusal is, and what it found.
fn described(text: &[u8], refusal: &Refusal, prefix: &str) -> String {
    let location = refusal.location().strip_prefix(prefix).unwrap_or_else(|| refusal.location());
    let (pointer, range) = location.split_once('#').unwrap_or((location, ""));
    let at = offset(text, location, refusal.code() == Code::JsonDuplicateKey);
    if let Some((at, cause)) = cause(text, at).filter(|_| is_about_json(refusal.code())) {
        return format!("{}: {}: {cause}", line_and_column(text, at), refusal.code());
    }
    // The place of a byte is its line and column.
    let shown = if range.is_empty() { location } else { pointer };
    let mut placed = Refusal::new(refusal.code(), shown);
    // The general meaning of this code is about payloads.
    let is_general = refusal.reason() == refusal.code().meaning();
    if refusal.code() == Code::UnexpectedField && is_general {
        placed = placed.with_reason("unknown field");
    } else if !is_general {
        placed = placed.with_reason(refusal.reason().to_owned());
    }
    placed = refusal.expected().into_iter().fold(placed, |placed, value| placed.with_expected(value.clone()));
    placed = refusal.actual().into_iter().fold(placed, |placed, value| placed.with_actual(value.clone()));
    format!("{}: {}", line_and_column(text, at), placed.finding())
}

/// Returns whether a code says that a text is not JSON at all.
const fn is_about_json(code: Code) -> bool {
    matches!(code, Code::JsonSyntax | Code::JsonNotUtf8)
}

/// Returns the usual mistake at a byte of a text that is not JSON, and the byte at which it begins; `None` if it is another one.
fn cause(text: &[u8], at: usize) -> Option<(usize, &'static str)> {
    if text.starts_with(&[0xef, 0xbb, 0xbf]) {
        return Some((0, "the file begins with a byte order mark (BOM): save it as UTF-8 without one"));
    }
    if text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]) {
        return Some((0, "the file is in UTF-16: save it as UTF-8"));
    }
    if text.trim_ascii().is_empty() {
        return Some((0, "the file is empty: a JSON object is expected, at least {}"));
    }
    let (before, rest) = text.split_at_checked(at)?;
    match rest {
        [b'/', b'/' | b'*', ..] | [b'#', ..] => Some((at, "JSON has no comments: remove it")),
        [b'\'', ..] => Some((at, "JSON has no single quotes: write \" on both sides")),
        [0xe2, 0x80, 0x98..=0x9f, ..] => Some((at, "these are typographic quotes: write \" on both sides")),
        [b'}' | b']', ..] if before.trim_ascii_end().ends_with(b",") => {
            Some((before.trim_ascii_end().len().saturating_sub(1), "there is a comma before the closing bracket: remove it"))
        }
        [b'"', ..] if before.trim_ascii_end().ends_with(b"\"") => Some((at, "there is no comma before this: write one")),
        [] => Some((at, "the file ends too early: a quote or a closing bracket is missing")),
        _ => None,
    }
}

/// Writes the line and the column of a byte, both from 1. A column counts characters.
fn line_and_column(text: &[u8], at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1);
    let start = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let column = String::from_utf8_lossy(start).chars().count().saturating_add(1);
    format!(", line {line}, column {column}")
}

/// Returns the byte at which a location of a text begins: a pointer, or a byte range behind `#`. A member begins with its key. Of what is
/// missing it is the place of what should contain it. `is_last` takes the last of several members with the same key.
fn offset(text: &[u8], location: &str, is_last: bool) -> usize {
    let (pointer, range) = location.split_once('#').unwrap_or((location, ""));
    if let Some(start) = range.split('-').next().and_then(|start| start.parse().ok()) {
        return start;
    }
    let (mut shown, mut value) = (space(text), space(text));
    for step in pointer.split('/').skip(1) {
        let Some(found) = child(value, &step.replace("~1", "/").replace("~0", "~"), is_last) else { break };
        (shown, value) = found;
    }
    text.len().saturating_sub(shown.len())
}

/// Returns the texts that begin with a member, and with its value; for an item both are the same. `None` if there is none.
fn child<'t>(value: &'t [u8], step: &str, is_last: bool) -> Option<(&'t [u8], &'t [u8])> {
    let (open, mut rest) = value.split_first()?;
    let (mut found, mut index) = (None, 0_usize);
    loop {
        rest = space(rest);
        let here = rest;
        let is_wanted = if *open == b'{' && here.starts_with(b"\"") {
            rest = behind_string(here);
            let key = here.get(..here.len().saturating_sub(rest.len()))?;
            rest = space(space(rest).strip_prefix(b":")?);
            serde_json::from_slice::<String>(key).is_ok_and(|key| key == step)
        } else if *open == b'[' {
            step == index.to_string()
        } else {
            return found;
        };
        if is_wanted {
            found = Some((here, rest));
            if !is_last {
                return found;
            }
        }
        index = index.saturating_add(1);
        match behind_value(rest).strip_prefix(b",") {
            Some(after) => rest = after,
            None => return found,
        }
    }
}

/// Returns the text from its first character that is not white space on.
const fn space(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

/// Returns the text behind the string with which it begins.
fn behind_string(text: &[u8]) -> &[u8] {
    let mut rest = text.get(1..).unwrap_or_default();
    loop {
        rest = match rest {
            [b'\\', _, after @ ..] => after,
            [b'"', after @ ..] => return after,
            [_, after @ ..] => after,
            [] => return rest,
        };
    }
}

/// Returns the text behind the value with which it begins: the comma or the closing bracket.
fn behind_value(text: &[u8]) -> &[u8] {
    let (mut depth, mut rest) = (0_usize, text);
    loop {
        rest = match rest {
            [] => return rest,
            [b',' | b'}' | b']', ..] if depth == 0 => return rest,
            [b'"', ..] => behind_string(rest),
            [b'{' | b'[', after @ ..] => {
                depth = depth.saturating_add(1);
                after
            }
            [b'}' | b']', after @ ..] => {
                depth = depth.saturating_sub(1);
                after
            }
            [_, after @ ..] => after,
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use countersign::json;

    use super::*;

    /// Returns the message for a text that is not JSON.
    fn told(text: &[u8]) -> String {
        described(text, &json::parse(text).unwrap_err(), "")
    }

    #[test]
    fn the_usual_mistakes_have_their_names_and_places() {
        for (text, at, words) in [
            ("\u{feff}{}", "line 1, column 1", "byte order mark"),
            ("{\n  // mine\n  \"a\": 1}", "line 2, column 3", "no comments"),
            ("{\"a\": 1, /* mine */ \"b\": 2}", "line 1, column 10", "no comments"),
            ("{\"a\": 1 # mine\n}", "line 1, column 9", "no comments"),
            ("{'a': 1}", "line 1, column 2", "single quotes"),
            ("{\"a\": 'b'}", "line 1, column 7", "single quotes"),
            ("{\"é\": “b”}", "line 1, column 7", "typographic quotes"),
            ("{\n  \"a\": 1,\n}", "line 2, column 9", "remove it"),
            ("{\"a\": [1, 2, ]}", "line 1, column 12", "remove it"),
            ("{\"a\": \"b\"\n \"c\": 1}", "line 2, column 2", "write one"),
            ("{\"a\": \"b\"", "line 1, column 10", "missing"),
            ("", "line 1, column 1", "empty"),
            (" \n", "line 1, column 1", "empty"),
            ("{\"a\": b}", "line 1, column 7", "not valid JSON"),
        ] {
            let told = told(text.as_bytes());
            assert!(told.starts_with(&format!(", {at}: ")) && told.contains(words) && !told.contains('#'), "{text}: {told}");
        }
        assert!(told(b"\xff\xfe{\0}\0").contains("UTF-16"));
    }

    #[test]
    fn a_location_has_a_line_and_a_column() {
        let text = "{\"a\": [1, {\"x\\\"}\": \"]\"}],\n \"b\": {\n  \"c/d\": [[], 2]},\n \"a\": 3}";
        for (location, is_last, place) in [
            ("", false, ", line 1, column 1"),
            ("/a", false, ", line 1, column 2"),
            ("/a", true, ", line 4, column 2"),
            ("/a/0", false, ", line 1, column 8"),
            ("/a/1/x\"}", false, ", line 1, column 12"),
            ("/b/c~1d/1", false, ", line 3, column 15"),
            ("/b/missing", false, ", line 2, column 2"),
            ("#27-28", false, ", line 2, column 2"),
        ] {
            assert_eq!(line_and_column(text.as_bytes(), offset(text.as_bytes(), location, is_last)), place, "{location}");
        }
        // What is not JSON has no places in it, and ends the search.
        for text in ["{", "{\"a", "{\"a\"", "[", "{\"a\":", "\"", "{\"a\": [", "\\", "{\"\\"] {
            for location in ["/a", "/a/0", "/0/0"] {
                let _ = offset(text.as_bytes(), location, true);
            }
        }
    }
}
