//! `bindings/python/python/countersign_swap/_shapes.pyi`.

use std::fmt::Write;

use crate::model::{Shape, Type, inputs, outputs, word_sets};

const HEAD: &str = "\
# Generated from the lists of crates/json by `UPDATE=1 cargo test -p countersign-json --test shapes`. Do not edit.
\"\"\"The values that the objects return, and the wallet contexts that they take.\"\"\"

from typing import Any, Literal, final

from typing_extensions import NotRequired, TypeAlias, TypedDict

# A number. As text it is decimal; a fee rate may have decimal places.
NumberLike: TypeAlias = int | str
";

pub(crate) fn write() -> String {
    let mut text = HEAD.to_owned();
    for set in word_sets() {
        let words: String = set.words.iter().map(|word| format!("    \"{word}\",\n")).collect();
        write!(text, "\n{}: TypeAlias = Literal[\n{words}]\n{}\n", set.name, docstring("", &set.doc)).unwrap();
    }
    outputs().iter().for_each(|shape| class(&mut text, shape));
    inputs().iter().for_each(|shape| typed_dict(&mut text, shape));
    text
}

fn class(text: &mut String, shape: &Shape) {
    write!(text, "\n@final\nclass {}:\n{}\n", shape.name, docstring("    ", &shape.doc)).unwrap();
    let names: String = shape.fields.iter().map(|field| format!("\"{}\", ", field.name)).collect();
    write!(text, "\n    __match_args__ = ({})\n", names.trim_end()).unwrap();
    for field in &shape.fields {
        let (name, kind) = (field.name, output(&field.kind));
        write!(text, "\n    @property\n    def {name}(self) -> {kind}:\n{}\n", docstring("        ", &field.doc)).unwrap();
    }
    let doc = "Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`.";
    write!(text, "\n    def to_dict(self) -> dict[str, Any]:\n{}\n", docstring("        ", doc)).unwrap();
}

fn typed_dict(text: &mut String, shape: &Shape) {
    write!(text, "\nclass {}({}):\n{}\n", shape.name, shape.base.unwrap_or("TypedDict"), docstring("    ", &shape.doc)).unwrap();
    for field in &shape.fields {
        let kind = input(field.kind.required());
        let kind = if field.kind.is_optional() { format!("NotRequired[{kind} | None]") } else { kind };
        write!(text, "\n    {}: {kind}\n{}\n", field.name, docstring("    ", &field.doc)).unwrap();
    }
}

fn docstring(indent: &str, doc: &str) -> String {
    format!("{indent}\"\"\"{doc}\"\"\"")
}

/// Returns the type of an attribute.
fn output(kind: &Type) -> String {
    match kind {
        Type::Option(inner) => format!("{} | None", output(inner)),
        Type::List(inner) => format!("list[{}]", output(inner)),
        Type::Map(inner) => format!("dict[str, {}]", output(inner)),
        Type::Named(name) => match name.as_str() {
            "String" => "str",
            "u8" | "u32" | "u64" | "Decimal" => "int",
            "Hex" => "bytes",
            name => name,
        }
        .to_owned(),
    }
}

/// Returns the type of a key that a wallet passes in.
fn input(kind: &Type) -> String {
    match kind {
        Type::List(inner) => format!("list[{}]", input(inner)),
        Type::Named(name) => match name.as_str() {
            "Integer" | "Decimal" | "Number" | "NumberOrText" | "IntegerOrDecimal" | "FeeRate" => "NumberLike",
            "Hex" | "BareHex" | "Felt" => "str",
            _ => return output(kind),
        }
        .to_owned(),
        _ => output(kind),
    }
}
