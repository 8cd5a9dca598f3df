//! Values as a page shows them: bytes in groups, zeros in front set back, and the digits that differ from what was expected marked.

use countersign::text;
use maud::{Markup, Render, html};

use super::cards::Shown;

/// Untrusted text: characters that could forge the display are escaped, then those of HTML. What a sentence quotes is isolated, so that
/// letters that are written from right to left do not move the words around it.
pub(super) struct Safe<'t>(pub(super) &'t str);

impl Render for Safe<'_> {
    fn render_to(&self, buffer: &mut String) {
        let text = text::escape_whole(self.0);
        if text.is_ascii() {
            return text.as_ref().render_to(buffer);
        }
        for (index, part) in text.split('"').enumerate() {
            if index > 0 {
                "\"".render_to(buffer);
            }
            // A quotation mark inside of a quotation is escaped.
            if index % 2 == 0 { part.render_to(buffer) } else { html! { bdi { (part) } }.render_to(buffer) }
        }
    }
}

/// Bytes in one group, and digits.
const GROUP_BYTES: usize = 4;
const GROUP: usize = 8;

/// Writes a value. Digits that differ from `other` are marked.
pub(super) fn value(shown: &Shown, other: Option<&Shown>) -> Markup {
    match (shown, other) {
        (Shown::Bytes(bytes), other) => {
            let other = match other {
                Some(Shown::Bytes(other)) if other.len() == bytes.len() => Some(hex::encode(other)),
                _ => None,
            };
            let digits = hex::encode(bytes);
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            html! {
                @if bytes.is_empty() { span.quiet { "empty" } }
                @for (index, group) in groups(&digits).enumerate() {
                    @let is_zero = index < zeros / GROUP_BYTES && zeros < bytes.len();
                    span.g.z[is_zero] { (marked(group, other.as_deref().and_then(|other| groups(other).nth(index)))) }
                }
            }
        }
        (Shown::Text(text), other) => {
            let other = match other {
                Some(Shown::Text(other)) if other.chars().count() == text.chars().count() => Some(other.as_str()),
                _ => None,
            };
            marked(text, other)
        }
    }
}

fn groups(digits: &str) -> impl Iterator<Item = &str> {
    (0..digits.len()).step_by(GROUP).filter_map(move |start| digits.get(start..digits.len().min(start.saturating_add(GROUP))))
}

/// Writes text with marks around the runs that differ from another text of the same length.
fn marked(text: &str, other: Option<&str>) -> Markup {
    let Some(other) = other.filter(|other| *other != text) else { return html! { (Safe(text)) } };
    let mut runs: Vec<(bool, String)> = Vec::new();
    for (left, right) in text.chars().zip(other.chars()) {
        match runs.last_mut() {
            Some((differs, run)) if *differs == (left != right) => run.push(left),
            _ => runs.push((left != right, left.to_string())),
        }
    }
    html! {
        @for (differs, run) in &runs {
            @if *differs { mark { (Safe(run)) } } @else { (Safe(run)) }
        }
    }
}
