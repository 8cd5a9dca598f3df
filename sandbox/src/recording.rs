//! Draws the output of a command as an animated SVG, in which lines appear in their order and scroll.

use std::fmt::Write as _;

/// The number of lines that are visible at once.
const ROWS: usize = 28;
/// The height of a line and the width of a letter, in the SVG's units.
const LINE: usize = 18;
const LETTER: usize = 8;
const COLUMNS: usize = 118;
/// Milliseconds between two lines, and the pause before the animation repeats.
const PACE: usize = 220;
const REST: usize = 6_000;

/// Returns an SVG of lines of text.
#[must_use]
pub fn svg(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (width, height) = (COLUMNS.saturating_mul(LETTER).saturating_add(32), ROWS.saturating_mul(LINE).saturating_add(32));
    let total = lines.len().saturating_mul(PACE).saturating_add(REST);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"A recording of the tour\">\n<style>text{{font:13px ui-monospace,SFMono-Regular,Menlo,monospace;fill:#d7dce2;white-space:pre}}\
         .ok{{fill:#56d364}}.bad{{fill:#ff8a80}}.head{{fill:#9db4ff;font-weight:bold}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#14181d\"/>\n\
         <svg x=\"16\" y=\"16\" width=\"{}\" height=\"{}\"><g>\n",
        width.saturating_sub(32),
        height.saturating_sub(32),
    );
    let clock = "<animate id=\"a\" attributeName=\"visibility\" values=\"visible\" begin=\"0s;a.end\"";
    let _ = writeln!(svg, "<g>{clock} dur=\"{}.{:03}s\"/></g>", total / 1_000, total % 1_000);
    for (index, line) in lines.iter().enumerate() {
        let at = index.saturating_mul(PACE);
        let y = index.saturating_mul(LINE).saturating_add(13);
        let _ = writeln!(
            svg,
            "<text y=\"{y}\"{} visibility=\"hidden\"><set attributeName=\"visibility\" to=\"visible\" begin=\"a.begin+{}.{:03}s\" end=\"a.end\"/>{}</text>",
            class(line),
            at / 1_000,
            at % 1_000,
            escaped(line),
        );
        if let Some(over) = index.checked_sub(ROWS).map(|over| over.saturating_add(1)) {
            let up = over.saturating_mul(LINE);
            let _ = writeln!(
                svg,
                "<animateTransform attributeName=\"transform\" type=\"translate\" from=\"0 -{up}\" to=\"0 -{up}\" begin=\"a.begin+{}.{:03}s\" dur=\"{}ms\"/>",
                at / 1_000,
                at % 1_000,
                if index.saturating_add(1) == lines.len() { REST } else { PACE },
            );
        }
    }
    svg.push_str("</g></svg>\n</svg>\n");
    svg
}

fn class(line: &str) -> &'static str {
    match line {
        line if line.starts_with("  ok:") => " class=\"ok\"",
        line if line.starts_with("  WRONG") => " class=\"bad\"",
        line if line.contains(" -> ") && !line.starts_with(' ') => " class=\"head\"",
        _ => "",
    }
}

fn escaped(line: &str) -> String {
    line.chars().take(COLUMNS).collect::<String>().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
