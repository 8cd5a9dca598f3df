//! `bindings/python/python/countersign_swap/_shapes.pyi`, and the module that it describes.

use std::fmt::Write;

use crate::model::{Shape, Type, inputs, outputs, word_sets};

const HEAD: &str = "\
# Generated from the lists of crates/json by `UPDATE=1 cargo test -p countersign-json --test shapes`. Do not edit.
\"\"\"The values that the objects return, the words in them, and the wallet contexts that the objects take.\"\"\"
";

const STUB: &str = "
from typing import Any, Literal, final

from typing_extensions import NotRequired, TypeAlias, TypedDict
";

// Annotations are not evaluated, so the module needs no package, and Python 3.9 has what it uses.
const MODULE: &str = "
from __future__ import annotations

from typing import Literal, TypedDict, Union
";

/// Returns the stub, which has the types.
pub(crate) fn stub() -> String {
    let mut text = format!("{HEAD}{STUB}\n{}", exports());
    text += "\n# A number. As text it is decimal; a fee rate may have decimal places.\nNumberLike: TypeAlias = int | str\n";
    words(&mut text);
    outputs().iter().for_each(|shape| class(&mut text, shape));
    inputs().iter().for_each(|shape| typed_dict(&mut text, shape));
    text
}

/// Returns the module. Its values are those of the compiled module.
pub(crate) fn module() -> String {
    let values: String = outputs().iter().map(|shape| format!("    {},\n", shape.name)).collect();
    let mut text = format!("{HEAD}{MODULE}\nfrom countersign_swap._native import (\n{values})\n\n{}", exports());
    text += "\nNumberLike: TypeAlias = Union[int, str]\n";
    words(&mut text);
    inputs().iter().for_each(|shape| typed_dict(&mut text, shape));
    text
}

/// Writes which names the package has.
fn exports() -> String {
    let mut names: Vec<_> =
        outputs().iter().chain(&inputs()).map(|shape| shape.name).chain(word_sets().iter().map(|set| set.name)).collect();
    names.sort_unstable();
    let names: String = names.into_iter().map(|name| format!("    \"{name}\",\n")).collect();
    format!("__all__ = [\n{names}]\n")
}

fn words(text: &mut String) {
    for set in word_sets() {
        let words: String = set.words.iter().map(|word| format!("    \"{word}\",\n")).collect();
        write!(text, "\n{}: TypeAlias = Literal[\n{words}]\n{}\n", set.name, docstring("", &set.doc)).unwrap();
    }
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
