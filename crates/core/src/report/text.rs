//! Makes untrusted text safe to show: its length is capped, characters that could forge the display are escaped, and text inside a
//! sentence is quoted.

use std::borrow::Cow;
use std::fmt::Write;

/// Maximum length of untrusted text that is shown, in characters before escaping.
pub const MAX_CHARACTERS: usize = 160;

/// Maximum number of combining marks on one character. Written languages need no more, and a stack of them covers the lines around it.
const MAX_MARKS: usize = 2;

/// Escapes control, bidirectional, line-breaking and invisible characters as `\u{..}`, and cuts the text after [`MAX_CHARACTERS`].
///
/// The second space in a row and the third combining mark on one character are escaped as well: a run of spaces moves what follows to
/// the start of a line on the screen, where it reads as a line of the program.
#[must_use]
pub fn escape_untrusted(text: &str) -> String {
    escape(text, MAX_CHARACTERS).into_owned()
}

/// Escapes like [`escape_untrusted`], and returns the same text without a copy if nothing has to be escaped.
#[must_use]
pub fn escape_owned(text: String) -> String {
    match escape(&text, MAX_CHARACTERS) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

/// Escapes the same characters without shortening the text, for places where every character counts: signatures, addresses, payloads.
#[must_use]
pub fn escape_whole(text: &str) -> Cow<'_, str> {
    escape(text, usize::MAX)
}

/// Escapes like [`escape_untrusted`], and puts the text in quotation marks unless it is a single plain word.
///
/// This is the form of untrusted text in a sentence: a word such as an address or an id cannot be taken for words of the sentence.
///
/// ```
/// use countersign::text::quote_untrusted;
///
/// assert_eq!(quote_untrusted("0xab12"), "0xab12");
/// assert_eq!(quote_untrusted("0xab12; you can sign"), "\"0xab12; you can sign\"");
/// ```
#[must_use]
pub fn quote_untrusted(text: &str) -> String {
    quote_unless_word(text, MAX_CHARACTERS)
}

/// Quotes like [`quote_untrusted`] without shortening the text.
#[must_use]
pub fn quote_whole(text: &str) -> String {
    quote_unless_word(text, usize::MAX)
}

/// Escapes like [`escape_untrusted`], and puts the text in quotation marks.
#[must_use]
pub fn quoted(text: &str) -> String {
    quote(&escape(text, MAX_CHARACTERS))
}

fn quote_unless_word(text: &str, max: usize) -> String {
    // A word has nothing to escape, and what is cut or escaped is not a word.
    if is_word(text) && text.len() <= max { text.to_owned() } else { quote(&escape(text, max)) }
}

fn is_word(text: &str) -> bool {
    let is_in_word =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'/' | b'+' | b'=' | b'#' | b'~');
    !text.is_empty() && text.bytes().all(is_in_word)
}

/// A quotation mark in the text must not end it.
fn quote(escaped: &str) -> String {
    format!("\"{}\"", escaped.replace('"', "\\u{0022}"))
}

fn escape(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().min(MAX_CHARACTERS));
    // A mark at the start would be drawn on what stands before the text.
    let (mut marks, mut after_space) = (MAX_MARKS, false);
    for (index, character) in text.chars().enumerate() {
        if index == max {
            out.push('…');
            break;
        }
        let is_mark = is_mark(character);
        let is_run = (is_mark && marks >= MAX_MARKS) || (after_space && character == ' ');
        if is_run || forges_display(character) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:04x}}}", u32::from(character));
        } else {
            out.push(character);
        }
        marks = if is_mark { marks.saturating_add(1) } else { 0 };
        after_space = character == ' ';
    }
    Cow::Owned(out)
}

/// Returns whether a text is printable ASCII without a run of spaces, which needs no escapes. Almost every value is.
fn is_plain(text: &str) -> bool {
    // There is no early exit, so that many bytes are compared at once.
    let bytes = text.as_bytes();
    let after = bytes.get(1..).unwrap_or_default();
    let is_run = bytes.iter().zip(after).fold(false, |is_run, (a, b)| is_run | ((*a == b' ') & (*b == b' ')));
    bytes.iter().fold(!is_run, |is_plain, byte| is_plain & matches!(byte, b' '..=b'~'))
}

/// Returns whether a character is drawn on the one before it, or has no form of its own: what `char::escape_debug` escapes beyond ASCII
/// are the characters that extend a grapheme, and those that cannot be printed.
fn is_mark(character: char) -> bool {
    !character.is_ascii() && character.escape_debug().next() == Some('\\')
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
    fn a_run_of_spaces_draws_no_line() {
        assert_eq!(escape_untrusted("a b c"), "a b c");
        assert_eq!(escape_untrusted("2026   get  0.259 BTC"), "2026 \\u{0020}\\u{0020}get \\u{0020}0.259 BTC");
        assert_eq!(escape_whole("a  b"), "a \\u{0020}b");
        assert_eq!(escape_owned("a  b".to_owned()), "a \\u{0020}b");
        let once = escape_untrusted("a   b");
        assert_eq!(escape_untrusted(&once), once);
    }

    #[test]
    fn a_stack_of_combining_marks_is_escaped() {
        // U+0301 and U+0323 are nonspacing marks, U+20DD is an enclosing one.
        assert_eq!(escape_untrusted("e\u{0323}\u{0301}a"), "e\u{0323}\u{0301}a");
        assert_eq!(escape_untrusted("e\u{0323}\u{0301}\u{20dd}\u{0301}a"), "e\u{0323}\u{0301}\\u{20dd}\\u{0301}a");
        assert_eq!(escape_untrusted("\u{0301}a"), "\\u{0301}a");
        assert!(escape_whole(&"\u{0301}".repeat(4_500)).is_ascii());
    }

    #[test]
    fn text_in_a_sentence_is_one_plain_word_or_quoted() {
        for word in ["v3", "0xAb12", "bitcoin:btc", "5f16-41aa", "1.5", "a+b/c=="] {
            assert_eq!(quote_untrusted(word), word);
        }
        for (text, quoted) in [
            ("", "\"\""),
            ("two words", "\"two words\""),
            ("a\" signed", "\"a\\u{0022} signed\""),
            ("a  b", "\"a \\u{0020}b\""),
            ("東京", "\"東京\""),
            ("a;b", "\"a;b\""),
        ] {
            assert_eq!(quote_untrusted(text), quoted);
        }
    }

    #[test]
    fn caps_the_length() {
        let long = "x".repeat(100_000);
        assert_eq!(escape_untrusted(&long).chars().count(), MAX_CHARACTERS + 1);
    }
}
