//! The lists of `countersign-json` as tables, from which the files are written.

use countersign_json::{for_each_input, for_each_shape, for_each_word_set};

use crate::documents::for_each_document;

/// A struct of a list.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    /// The shape whose members it has too.
    pub(crate) base: Option<&'static str>,
    pub(crate) fields: Vec<Field>,
}

/// A member of a struct.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    pub(crate) kind: Type,
}

/// The type of a member.
pub(crate) enum Type {
    Option(Box<Self>),
    List(Box<Self>),
    /// An object from any name to the type.
    Map(Box<Self>),
    /// A basic type, a set of words or a struct.
    Named(String),
}

impl Type {
    fn parse(text: &str) -> Self {
        let inner = |wrapper| text.strip_prefix(wrapper)?.strip_prefix('<')?.strip_suffix('>').map(|inner| Box::new(Self::parse(inner)));
        inner("Option")
            .map(Self::Option)
            .or_else(|| inner("Vec").map(Self::List))
            .or_else(|| inner("Map").map(Self::Map))
            .unwrap_or_else(|| Self::Named(text.to_owned()))
    }

    /// Returns the type of a value that is there.
    pub(crate) fn required(&self) -> &Self {
        if let Self::Option(inner) = self { inner } else { self }
    }

    pub(crate) fn is_optional(&self) -> bool {
        matches!(self, Self::Option(_))
    }

    /// Returns the name of the basic type, the set or the struct, apart from what it is wrapped in.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Option(inner) | Self::List(inner) | Self::Map(inner) => inner.name(),
            Self::Named(name) => name,
        }
    }
}

/// A closed set of words.
pub(crate) struct WordSet {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    pub(crate) words: Vec<String>,
}

/// Joins the lines of a doc comment.
fn doc(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

macro_rules! shapes {
    ($($(#[doc = $doc:literal])* $name:ident $(: $base:ident)? { $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)* })*) => {
        vec![$(Shape {
            name: stringify!($name),
            doc: doc(&[$($doc),*]),
            base: [$(stringify!($base))?].first().copied(),
            fields: vec![$(Field {
                name: stringify!($field),
                doc: doc(&[$($field_doc),*]),
                kind: Type::parse(&stringify!($type).replace(' ', "")),
            }),*],
        }),*]
    };
}

/// Returns the structs that the objects return.
pub(crate) fn outputs() -> Vec<Shape> {
    for_each_shape! { shapes }
}

/// Returns the objects that wallets pass in. A context of a recovery comes after its base.
pub(crate) fn inputs() -> Vec<Shape> {
    for_each_input! { shapes }
}

/// Returns the objects in the documents of an order, and in the wallet's own files.
pub(crate) fn documents() -> Vec<Shape> {
    for_each_document! { shapes }
}

/// Returns the closed sets of words.
pub(crate) fn word_sets() -> Vec<WordSet> {
    macro_rules! sets {
        ($($(#[doc = $doc:literal])* $name:ident = $words:expr;)*) => {
            vec![$(WordSet {
                name: stringify!($name),
                doc: doc(&[$($doc),*]),
                words: $words.into_iter().map(|word| word.to_string()).collect(),
            }),*]
        };
    }
    for_each_word_set! { sets }
}

/// Returns the shape with this name.
pub(crate) fn find<'s>(shapes: &'s [Shape], name: &str) -> &'s Shape {
    shapes.iter().find(|shape| shape.name == name).unwrap_or_else(|| panic!("no shape {name}"))
}

/// Returns the members of a shape, those of its base first.
pub(crate) fn members<'s>(shapes: &'s [Shape], shape: &'s Shape) -> Vec<&'s Field> {
    let base = shape.base.map(|base| find(shapes, base));
    base.into_iter().chain([shape]).flat_map(|shape| &shape.fields).collect()
}

/// Returns the names of the members that have one of these basic types, sorted.
pub(crate) fn members_of_type(shapes: &[Shape], types: &[&str]) -> Vec<&'static str> {
    let fields = shapes.iter().flat_map(|shape| &shape.fields).filter(|field| types.contains(&field.kind.name()));
    let mut names: Vec<_> = fields.map(|field| field.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Writes a name in camel case.
pub(crate) fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut whole, part| {
        let mut letters = part.chars();
        whole.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        whole + letters.as_str()
    })
}
