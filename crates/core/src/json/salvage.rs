//! Finds the id of a line that cannot be parsed, so that its error can be matched to it.

use super::{Value, parse};

/// Returns the string member `id` of the outermost object, even if the text is cut off, is nested too deeply or has other duplicate
/// keys. `None` unless exactly one `id` can be read, also where one line holds several objects.
///
/// Takes linear time, and does not recurse.
#[must_use]
pub fn salvage_id(bytes: &[u8]) -> Option<String> {
    let mut found = None;
    let mut depth = 0_usize;
    let mut key: Option<&[u8]> = None;
    let mut expects_key = false;
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if rest.first() != Some(&b'{') {
        return None;
    }
    while let Some((&byte, tail)) = rest.split_first() {
        match byte {
            b'"' => {
                let Some(len) = string_len(rest) else { break };
                let (string, after) = rest.split_at_checked(len)?;
                if depth == 1 && expects_key {
                    key = Some(string);
                    expects_key = false;
                } else if depth == 1
                    && let Some(name) = key.take()
                    && unescape(name).as_deref() == Some("id")
                {
                    // Of two ids, neither can be trusted.
                    if found.is_some() {
                        return None;
                    }
                    found = Some(unescape(string)?);
                }
                rest = after;
                continue;
            }
            b'{' | b'[' => {
                if depth == 1 && key.take().is_some_and(|name| unescape(name).as_deref() == Some("id")) {
                    return None;
                }
                depth = depth.saturating_add(1);
                expects_key = depth == 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                key = None;
            }
            b',' if depth == 1 => {
                // An id that is not a string counts as one that cannot be read.
                if key.take().is_some_and(|name| unescape(name).as_deref() == Some("id")) {
                    return None;
                }
                expects_key = true;
            }
            _ => {}
        }
        rest = tail;
    }
    found
}

/// Returns the length of the string at the start, quotes included.
fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (index, byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index.checked_add(1),
            _ => {}
        }
    }
    None
}

fn unescape(string: &[u8]) -> Option<String> {
    match parse(string) {
        Ok(Value::String(text)) => Some(text.into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_one_id() {
        for (text, id) in [
            (r#"{"id":"a","x":1"#, Some("a")),
            (r#" {"x":{"id":"inner"},"i\u0064":"b\u0063","y":[[["#, Some("bc")),
            (r#"{"x":"\"id\":\"c\"","id":"d"} trailing"#, Some("d")),
            (r#"{"id":"a","id":"a"}"#, None),
            (r#"{"id":"a"}{"id":"b"}"#, None),
            (r#"{"x":1}{"id":"b"}"#, Some("b")),
            (r#"{"id":"a"} "id" {"x":{"id":"b"}}"#, Some("a")),
            ("\u{feff}{\"id\":\"a\"}", Some("a")),
            (r#"{"id":5}"#, None),
            (r#"{"id":5,"x":"id"}"#, None),
            (r#"{"id":["a"]}"#, None),
            (r#"["id","a"]"#, None),
            (r#"{"id":"a"#, None),
            (r#"{"x":"id","y":"a"}"#, None),
            ("", None),
        ] {
            assert_eq!(salvage_id(text.as_bytes()).as_deref(), id, "{text}");
        }
        let deep = format!(r#"{{"x":{}{},"id":"deep"}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(salvage_id(deep.as_bytes()).as_deref(), Some("deep"));
        assert_eq!(salvage_id(b"{\"x\":\"\xff\",\"id\":\"raw\"}").as_deref(), Some("raw"));
    }
}
