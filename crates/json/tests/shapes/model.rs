//! The lists of `countersign-json` as tables, from which the files are written.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use countersign_json::{Input, for_each_shape};

use crate::documents::documents;

/// What the objects return.
pub(crate) static OUTPUTS: LazyLock<Vec<Shape>> = LazyLock::new(|| for_each_shape! { shapes });
/// What wallets pass in. A context of a recovery comes after its base.
pub(crate) static INPUTS: LazyLock<Vec<Shape>> = LazyLock::new(|| countersign_json::inputs().into_iter().map(Shape::of_input).collect());
/// The documents of an order, and the wallet's own files.
pub(crate) static DOCUMENTS: LazyLock<Vec<Shape>> = LazyLock::new(documents);

/// A struct of a list.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    /// The shape whose members it has too.
    pub(crate) base: Option<&'static str>,
    /// The members that its base does not have.
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
    pub(crate) fn parse(text: &str) -> Self {
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

/// Joins the lines of a doc comment.
pub(crate) fn doc(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

macro_rules! shapes {
    ($($(#[doc = $doc:literal])* $name:ident $(: $base:ident)? { $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)* })*) => {
        vec![$($crate::model::Shape {
            name: stringify!($name),
            doc: $crate::model::doc(&[$($doc),*]),
            base: [$(stringify!($base))?].first().copied(),
            fields: vec![$($crate::model::Field {
                name: stringify!($field),
                doc: $crate::model::doc(&[$($field_doc),*]),
                kind: $crate::model::Type::parse(&stringify!($type).replace(' ', "")),
            }),*],
        }),*]
    };
}
pub(crate) use shapes;

impl Shape {
    fn of_input(input: &'static Input) -> Self {
        let Input { name, doc: lines, base, members, types, .. } = *input;
        let fields = members.iter().zip(types).map(|(&name, (kind, lines))| Field {
            name,
            doc: doc(lines),
            kind: Type::parse(&kind.replace(' ', "")),
        });
        Self { name, doc: doc(lines), base, fields: fields.collect() }
    }

    /// Returns the members, those of the base first.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Field> {
        self.base.into_iter().flat_map(|base| &find(base).fields).chain(&self.fields)
    }
}

/// Returns the shape with this name; `None` if there is none.
pub(crate) fn get(name: &str) -> Option<&'static Shape> {
    [&*OUTPUTS, &*INPUTS, &*DOCUMENTS].into_iter().flatten().find(|shape| shape.name == name)
}

/// Returns the shape with this name.
pub(crate) fn find(name: &str) -> &'static Shape {
    get(name).unwrap_or_else(|| panic!("no shape {name}"))
}

/// Returns the names of the members that have one of these basic types, sorted.
pub(crate) fn members_of_type(shapes: &[Shape], types: &[&str]) -> Vec<&'static str> {
    let fields = shapes.iter().flat_map(|shape| &shape.fields).filter(|field| types.contains(&field.kind.name()));
    fields.map(|field| field.name).collect::<BTreeSet<_>>().into_iter().collect()
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
