//! `bindings/js/lib/shapes.ts`.

use std::fmt::Write;

use crate::model::{Field, Shape, Type, camel, inputs, members_of_type, outputs, word_sets};

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
    for set in word_sets() {
        let words: String = set.words.iter().map(|word| format!("\n  | \"{word}\"")).collect();
        write!(text, "\n{}export type {} ={words};\n", comment("", &set.doc), set.name).unwrap();
    }
    let (outputs, inputs) = (outputs(), inputs());
    for shape in &outputs {
        interface(&mut text, shape, |field| format!("{}: {}", camel(field.name), output(&field.kind)));
    }
    for shape in &inputs {
        interface(&mut text, shape, |field| {
            let kind = input(field.kind.required());
            if field.kind.is_optional() {
                format!("{}?: {kind} | undefined", camel(field.name))
            } else {
                format!("{}: {kind}", camel(field.name))
            }
        });
    }
    let mut table = |name: &str, doc: &str, members: Vec<&str>| {
        let members: Vec<_> = members.iter().map(|member| format!("\"{member}\"")).collect();
        write!(text, "\n/** {doc} @internal */\nexport const {name}: ReadonlySet<string> = new Set([{}]);\n", members.join(", ")).unwrap();
    };
    table(
        "BIGINT_MEMBERS",
        "Members that are decimal text in the JSON of the module, and bigint here.",
        members_of_type(&outputs, &["Decimal"]),
    );
    table(
        "BYTE_MEMBERS",
        "Members of signing requests that are hex in the JSON of the module, and bytes here.",
        members_of_type(&outputs, &["Hex"]),
    );
    table(
        "INTEGER_MEMBERS",
        "Members of wallet contexts that are JSON integers, by their names in JSON.",
        members_of_type(&inputs, &["Integer"]),
    );
    table(
        "DECIMAL_MEMBERS",
        "Members of wallet contexts whose numbers are decimal text, by their names in JSON.",
        members_of_type(&inputs, &["Decimal", "FeeRate"]),
    );
    text
}

fn interface(text: &mut String, shape: &Shape, member: impl Fn(&Field) -> String) {
    let base = shape.base.map(|base| format!(" extends {base}")).unwrap_or_default();
    write!(text, "\n{}export interface {}{base} {{\n", comment("", &shape.doc), renamed(shape.name)).unwrap();
    for field in &shape.fields {
        writeln!(text, "{}  readonly {};", comment("  ", &field.doc), member(field)).unwrap();
    }
    text.push_str("}\n");
}

fn renamed(name: &str) -> &str {
    RENAMED.iter().find(|(from, _)| *from == name).map_or(name, |(_, to)| to)
}

/// Returns the type of a member that the objects return.
fn output(kind: &Type) -> String {
    match kind {
        Type::Option(inner) => format!("{} | null", output(inner)),
        Type::List(inner) => format!("readonly {}[]", output(inner)),
        Type::Map(inner) => format!("{{ readonly [name: string]: {} }}", output(inner)),
        Type::Named(name) => match name.as_str() {
            "String" => "string",
            "bool" => "boolean",
            "u8" | "u32" | "u64" => "number",
            "Decimal" => "bigint",
            "Hex" => "Uint8Array",
            name => renamed(name),
        }
        .to_owned(),
    }
}

/// Returns the type of a member that a wallet passes in.
fn input(kind: &Type) -> String {
    match kind {
        Type::List(inner) => format!("readonly {}[]", input(inner)),
        Type::Named(name) => match name.as_str() {
            "Integer" | "Decimal" | "Number" | "NumberOrText" | "IntegerOrDecimal" | "FeeRate" => "NumberLike",
            "Hex" | "Felt" => "HexString",
            "BareHex" => "string",
            _ => return output(kind),
        }
        .to_owned(),
        _ => output(kind),
    }
}

/// Writes a doc comment, with the names of members as they are here.
fn comment(indent: &str, doc: &str) -> String {
    let camel_case = |(index, part): (usize, &str)| if index % 2 == 1 && is_member(part) { camel(part) } else { part.to_owned() };
    let doc: Vec<_> = doc.split('`').enumerate().map(camel_case).collect();
    format!("{indent}/** {} */\n", doc.join("`"))
}

fn is_member(name: &str) -> bool {
    outputs().iter().chain(&inputs()).flat_map(|shape| &shape.fields).any(|field| field.name == name)
}
