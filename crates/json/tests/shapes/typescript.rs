//! `bindings/js/lib/shapes.ts`.

use std::fmt::Write;

use countersign_json::objects::words;

use crate::model::{INPUTS, OUTPUTS, Shape, Type, camel, doc, members_of_type};
use crate::python::{UNIONS, members};

const HEAD: &str = "\
// Generated from the lists of crates/json by `UPDATE=1 cargo test -p countersign-json --test shapes`. Do not edit.

/** Bytes or a number in hex with `0x`. */
export type HexString = `0x${string}`;

/** A number: whole, except that a fee rate may have decimal places. Above 2^53 a `number` is not exact, and a bigint or text is needed. */
export type NumberLike = bigint | number | string;
";

/// Names that the language or the DOM has already, with what they are here.
const RENAMED: [(&str, &str); 3] = [("Line", "SummaryLine"), ("Request", "SigningRequest"), ("Value", "TypedValue")];

pub(crate) fn write() -> String {
    let mut text = HEAD.to_owned();
    for set in words::ALL {
        let words: String = (set.words)().iter().map(|word| format!("\n  | \"{word}\"")).collect();
        write!(text, "\n{}export type {} ={words};\n", comment("", &doc(set.doc)), set.name).unwrap();
    }
    OUTPUTS.iter().for_each(|shape| interface(&mut text, shape, false));
    INPUTS.iter().for_each(|shape| interface(&mut text, shape, true));
    for (union, doc) in UNIONS {
        let names: String = members(union).map(|name| format!("\n  | {name}")).collect();
        write!(text, "\n{}export type {union} ={names};\n", comment("", doc)).unwrap();
    }
    for (name, doc, shapes, types) in [
        ("BIGINT_MEMBERS", "Members that are decimal text in the JSON of the module, and bigint here.", &OUTPUTS, ["Decimal"].as_slice()),
        ("BYTE_MEMBERS", "Members of signing requests that are hex in the JSON of the module, and bytes here.", &OUTPUTS, &["Hex"]),
        ("INTEGER_MEMBERS", "Members of wallet contexts that are JSON integers, by their names in JSON.", &INPUTS, &["Integer"]),
        (
            "DECIMAL_MEMBERS",
            "Members of wallet contexts whose numbers are decimal text, by their names in JSON.",
            &INPUTS,
            &["Decimal", "FeeRate"],
        ),
    ] {
        let members = members_of_type(shapes, types);
        write!(text, "\n/** {doc} @internal */\nexport const {name}: ReadonlySet<string> = new Set({members:?});\n").unwrap();
    }
    text
}

fn interface(text: &mut String, shape: &Shape, is_input: bool) {
    let base = shape.base.map(|base| format!(" extends {base}")).unwrap_or_default();
    write!(text, "\n{}export interface {}{base} {{\n", comment("", &shape.doc), renamed(shape.name)).unwrap();
    for field in &shape.fields {
        let mark = if is_input && field.kind.is_optional() { "?" } else { "" };
        let (name, kind) = (camel(field.name), written(&field.kind, is_input));
        writeln!(text, "{}  readonly {name}{mark}: {kind};", comment("  ", &field.doc)).unwrap();
    }
    text.push_str("}\n");
}

fn renamed(name: &str) -> &str {
    RENAMED.iter().find(|(from, _)| *from == name).map_or(name, |(_, to)| to)
}

/// Returns the type of a member that a wallet passes in, or that the objects return.
fn written(kind: &Type, is_input: bool) -> String {
    match kind {
        Type::Option(inner) => format!("{} | {}", written(inner, is_input), if is_input { "undefined" } else { "null" }),
        Type::List(inner) => format!("readonly {}[]", written(inner, is_input)),
        Type::Map(inner) => format!("{{ readonly [name: string]: {} }}", written(inner, is_input)),
        Type::Named(name) => match name.as_str() {
            "String" | "BareHex" => "string",
            "bool" => "boolean",
            "u8" | "u32" | "u64" => "number",
            "Decimal" if !is_input => "bigint",
            "Integer" | "Decimal" | "Number" | "NumberOrText" | "IntegerOrDecimal" | "FeeRate" => "NumberLike",
            "Hex" if !is_input => "Uint8Array",
            "Hex" | "Felt" => "HexString",
            name => renamed(name),
        }
        .to_owned(),
    }
}

/// Writes a doc comment, with the names of members as they are here.
fn comment(indent: &str, doc: &str) -> String {
    let camel_case = |(index, part): (usize, &str)| if index % 2 == 1 && is_member(part) { camel(part) } else { part.to_owned() };
    let doc: Vec<_> = doc.split('`').enumerate().map(camel_case).collect();
    format!("{indent}/** {} */\n", doc.join("`"))
}

fn is_member(name: &str) -> bool {
    OUTPUTS.iter().chain(&*INPUTS).flat_map(|shape| &shape.fields).any(|field| field.name == name)
}
