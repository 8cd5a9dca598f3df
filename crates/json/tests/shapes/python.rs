//! `bindings/python/python/countersign_swap/_shapes.py`.

use std::fmt::Write;

use countersign_json::objects::words;

use crate::model::{INPUTS, OUTPUTS, Shape, Type, doc};

// Annotations are not evaluated, so the module needs no package, and Python 3.9 has what it uses.
const HEAD: &str = "\
# Generated from the lists of crates/json by `UPDATE=1 cargo test -p countersign-json --test shapes`. Do not edit.
\"\"\"The values that the objects return, the words in them, and the wallet contexts that the objects take.\"\"\"

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Union

if TYPE_CHECKING:
    from typing import Any, final

    from typing_extensions import NotRequired, TypeAlias
";

/// The unions over all families, with their doc comments. A context ends with what is before `Context` here.
pub(crate) const UNIONS: [(&str, &str); 2] = [
    ("WalletContext", "The wallet context of a family, for `Order.prepare`."),
    ("RecoveryContext", "The wallet context of a recovery, for `Recovery.prepare`."),
];

/// Returns the names of a union's types.
pub(crate) fn members(union: &str) -> impl Iterator<Item = &'static str> {
    let suffix = union.strip_suffix("Context").unwrap();
    INPUTS.iter().map(|shape| shape.name).filter(move |name| name.ends_with(suffix))
}

/// Returns the names of what is in the module; TypeScript has them too.
pub(crate) fn names() -> Vec<&'static str> {
    OUTPUTS.iter().chain(&*INPUTS).map(|shape| shape.name).chain(words::ALL.iter().map(|set| set.name)).collect()
}

/// Returns the module, with the types. At run time its values are those of the compiled module.
pub(crate) fn write() -> String {
    let mut names = names();
    names.extend(UNIONS.map(|(name, _)| name));
    names.sort_unstable();
    let names: String = names.into_iter().map(|name| format!("    \"{name}\",\n")).collect();
    let mut text = format!("{HEAD}\n__all__ = [\n{names}]\n");
    text += "\n# A number. As text it is decimal; a fee rate may have decimal places.\nNumberLike: TypeAlias = Union[int, str]\n";
    for set in words::ALL {
        let words: String = (set.words)().iter().map(|word| format!("    \"{word}\",\n")).collect();
        write!(text, "\n{}: TypeAlias = Literal[\n{words}]\n\"\"\"{}\"\"\"\n", set.name, doc(set.doc)).unwrap();
    }
    text += "\nif TYPE_CHECKING:\n";
    OUTPUTS.iter().for_each(|shape| class(&mut text, shape));
    let values: Vec<_> = OUTPUTS.iter().map(|shape| shape.name).collect();
    write!(text, "\nelse:\n    from countersign_swap._native import {}\n", values.join(", ")).unwrap();
    INPUTS.iter().for_each(|shape| typed_dict(&mut text, shape));
    for (union, doc) in UNIONS {
        let names: String = members(union).map(|name| format!("    {name},\n")).collect();
        write!(text, "\n{union}: TypeAlias = Union[\n{names}]\n\"\"\"{doc}\"\"\"\n").unwrap();
    }
    text
}

/// Writes a class for type checkers, in the form of a stub.
fn class(text: &mut String, shape: &Shape) {
    write!(text, "\n    @final\n    class {}:\n        \"\"\"{}\"\"\"\n", shape.name, shape.doc).unwrap();
    let names: String = shape.fields.iter().map(|field| format!("\"{}\", ", field.name)).collect();
    write!(text, "\n        __match_args__ = ({})\n", names.trim_end()).unwrap();
    for field in &shape.fields {
        write!(text, "        @property\n{}", method(field.name, &written(&field.kind, false), &field.doc)).unwrap();
    }
    let doc = "Returns the attributes as a dict that `json.dumps` takes: numbers are `int`, and bytes are hex with `0x`.";
    text.push_str(&method("to_dict", "dict[str, Any]", doc));
}

/// Writes a method of a class. `...` says that its body is elsewhere.
fn method(name: &str, kind: &str, doc: &str) -> String {
    format!("        def {name}(self) -> {kind}:\n            \"\"\"{doc}\"\"\"\n            ...\n")
}

fn typed_dict(text: &mut String, shape: &Shape) {
    write!(text, "\nclass {}({}):\n    \"\"\"{}\"\"\"\n", shape.name, shape.base.unwrap_or("TypedDict"), shape.doc).unwrap();
    for field in &shape.fields {
        let kind = written(&field.kind, true);
        let kind = if field.kind.is_optional() { format!("NotRequired[{kind}]") } else { kind };
        write!(text, "\n    {}: {kind}\n    \"\"\"{}\"\"\"\n", field.name, field.doc).unwrap();
    }
}

/// Returns the type of a key that a wallet passes in, or of an attribute.
fn written(kind: &Type, is_input: bool) -> String {
    match kind {
        Type::Option(inner) => format!("{} | None", written(inner, is_input)),
        Type::List(inner) => format!("list[{}]", written(inner, is_input)),
        Type::Map(inner) => format!("dict[str, {}]", written(inner, is_input)),
        Type::Named(name) => match name.as_str() {
            "u8" | "u32" | "u64" => "int",
            "Decimal" if !is_input => "int",
            "Integer" | "Decimal" | "Number" | "NumberOrText" | "IntegerOrDecimal" | "FeeRate" => "NumberLike",
            "Hex" if !is_input => "bytes",
            "String" | "Hex" | "BareHex" | "Felt" => "str",
            name => name,
        }
        .to_owned(),
    }
}
