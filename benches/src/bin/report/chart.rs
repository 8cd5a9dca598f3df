//! Draws the ratios as a chart: plain SVG, readable in light and dark mode.

use std::fmt::Write;

use countersign_benches::families::{self, Compared};

use crate::results::Results;
use crate::tables::in_digits;

const WIDTH: f64 = 760.0;
/// The left end of the bars, and the length of the longest bar.
const LEFT: f64 = 190.0;
const LENGTH: f64 = 480.0;
const BAR: f64 = 18.0;
const TOP: f64 = 84.0;
/// The distance between two families.
const ROW: f64 = 58.0;

const STYLE: &str = "
  .page { fill: #ffffff; } .js { fill: #1f6feb; } .rust { fill: #8a6d3b; } .aim { stroke: #1f2328; stroke-width: 2; }
  .one { stroke: #6e7781; stroke-dasharray: 3 3; } text { fill: #1f2328; font: 13px system-ui, sans-serif; }
  .title { font-size: 16px; font-weight: 600; } .family { font-weight: 600; } .small { fill: #57606a; font-size: 12px; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } .js { fill: #58a6ff; } .rust { fill: #c9a227; } .aim { stroke: #f0f6fc; }
    .one { stroke: #8b949e; } text { fill: #f0f6fc; } .small { fill: #9198a1; }
  }
";

/// Draws how many times faster `batch` is than each SDK, using the best round of each.
pub(crate) fn draw(results: &Results) -> String {
    let of = |compared: &'static Compared| results.families.iter().find(|it| it.family == compared.family.name());
    let families: Vec<_> = families::ALL.iter().filter_map(|compared| Some((compared, of(compared)?))).collect();
    let ratio = |name: &str, index: usize| families.get(index).and_then(|(_, family)| family.ratios.get(name)).map(|ratio| ratio.best);
    let ratios = (0..families.len()).flat_map(|index| [ratio("js", index), ratio("peer", index)]).flatten();
    let longest = families::ALL.iter().map(|compared| compared.aim).chain(ratios).fold(1.0, f64::max);
    let x = |value: f64| LEFT + value / longest * LENGTH;
    let height = TOP + ROW * families.len() as f64 + 8.0;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-labelledby=\"title\">\n<title id=\"title\">How many times faster countersign signs a whole order than each chain's usual \
         SDK</title>\n<style>{STYLE}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"16\" y=\"28\">A whole order, verified and signed: times faster than the usual SDK</text>\n\
         <rect class=\"js\" x=\"16\" y=\"44\" width=\"12\" height=\"12\"/><text class=\"small\" x=\"34\" y=\"55\">JavaScript SDK</text>\n\
         <rect class=\"rust\" x=\"150\" y=\"44\" width=\"12\" height=\"12\"/><text class=\"small\" x=\"168\" y=\"55\">Rust SDK</text>\n\
         <line class=\"aim\" x1=\"256\" y1=\"42\" x2=\"256\" y2=\"58\"/><text class=\"small\" x=\"264\" y=\"55\">aim</text>\n\
         <line class=\"one\" x1=\"316\" y1=\"42\" x2=\"316\" y2=\"58\"/><text class=\"small\" x=\"324\" y=\"55\">as fast as the SDK</text>\n"
    );
    let _ = writeln!(svg, "<line class=\"one\" x1=\"{0:.1}\" y1=\"{1}\" x2=\"{0:.1}\" y2=\"{2}\"/>", x(1.0), TOP - 8.0, height - 12.0);
    for (index, (compared, _)) in families.iter().enumerate() {
        let (family, aim) = (compared.family.name(), &compared.aim);
        let y = TOP + ROW * index as f64;
        let _ = writeln!(svg, "<text class=\"family\" x=\"16\" y=\"{}\">{family}</text>", y + 14.0);
        let bars = [("js", Some(compared.javascript), y), ("peer", compared.rust(), y + BAR + 4.0)];
        for (name, label, y) in bars {
            let (Some(label), Some(ratio)) = (label, ratio(name, index)) else { continue };
            let class = if name == "js" { "js" } else { "rust" };
            let _ = writeln!(
                svg,
                "<text class=\"small\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>\
                 <rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\"/>\
                 <text x=\"{:.1}\" y=\"{}\">{}x</text>",
                LEFT - 8.0,
                y + 13.0,
                x(ratio) - LEFT,
                // The label is right of the bar, and right of the aim's mark if the mark is close.
                x(if name == "js" && (ratio..ratio + longest * 0.1).contains(aim) { *aim } else { ratio }) + 6.0,
                y + 14.0,
                in_digits(ratio),
            );
        }
        let aim = x(*aim);
        let _ = writeln!(svg, "<line class=\"aim\" x1=\"{aim:.1}\" y1=\"{}\" x2=\"{aim:.1}\" y2=\"{}\"/>", y - 3.0, y + BAR + 3.0);
    }
    svg.push_str("</svg>\n");
    svg
}
