//! Makes untrusted text safe to show: its length is capped, and characters that could forge the display are escaped.

use std::borrow::Cow;
use std::fmt::Write;

/// Maximum length of untrusted text that is shown, in characters before escaping.
pub const MAX_CHARACTERS: usize = 160;

/// Escapes control, bidirectional, line-breaking and invisible characters as `\u{..}`, and cuts the text after
/// [`MAX_CHARACTERS`].
#[must_use]
pub fn escape_untrusted(text: &str) -> String {
    if text.len() <= MAX_CHARACTERS && is_plain(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(MAX_CHARACTERS));
    for (index, character) in text.chars().enumerate() {
        if index == MAX_CHARACTERS {
            out.push('…');
            break;
        }
        if forges_display(character) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:04x}}}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

/// Escapes like [`escape_untrusted`], and returns the same text without a copy if nothing has to be escaped.
#[must_use]
pub fn escape_owned(text: String) -> String {
    if text.len() <= MAX_CHARACTERS && is_plain(&text) { text } else { escape_untrusted(&text) }
}

/// Escapes the same characters without shortening the text, for places where every character counts: signatures, addresses, payloads.
#[must_use]
pub fn escape_whole(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut buffer = [0; 4];
    Cow::Owned(text.chars().map(|character| escape_untrusted(character.encode_utf8(&mut buffer))).collect())
}

/// Returns whether a text is printable ASCII, which needs no escapes. Almost every value is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns whether a character moves, hides or breaks the text around it, or is blank without being a space.
fn forges_display(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{00a0}' | '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180e}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}'
                | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_could_forge_a_line() {
        assert_eq!(escape_untrusted("3\nowner: me"), "3\\u{000a}owner: me");
        assert_eq!(escape_untrusted("a\u{202e}b\u{2066}c\u{2028}d\u{200b}e\u{9b}f"), "a\\u{202e}b\\u{2066}c\\u{2028}d\\u{200b}e\\u{009b}f");
        assert_eq!(escape_untrusted("a\u{a0}b\u{1680}c\u{17b4}d\u{2800}e\u{ffa0}f"), "a\\u{00a0}b\\u{1680}c\\u{17b4}d\\u{2800}e\\u{ffa0}f");
        assert_eq!(escape_untrusted("Zürich 東京"), "Zürich 東京");
    }

    #[test]
    fn caps_the_length() {
        let long = "x".repeat(100_000);
        assert_eq!(escape_untrusted(&long).chars().count(), MAX_CHARACTERS + 1);
    }
}
