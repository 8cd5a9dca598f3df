//! The objects that wallets pass in: wallet contexts, contexts of recoveries, and signatures in several parts. Each family declares its own,
//! beside the code that reads them. Bindings and documents take them from [`inputs`].

use countersign::for_each_family;

use super::JsonFamily;

/// An object that wallets pass in.
///
/// A type of a member is a set of [words](crate::objects::words), another object of the list, or one of these. It may be in a `Vec`, and a
/// member that may be missing or null is an `Option`.
///
/// | type | JSON |
/// |---|---|
/// | `String`, `bool` | the same |
/// | `Integer` | an integer of at most 64 bits |
/// | `Decimal` | a decimal string |
/// | `Number` | an integer, a decimal string or a `0x` hex string |
/// | `NumberOrText` | the same, or other text |
/// | `IntegerOrDecimal` | an integer or a decimal string |
/// | `Hex` | bytes in `0x` hex |
/// | `BareHex` | bytes in hex without `0x` |
/// | `Felt` | `0x` and 1 to 64 hex digits |
/// | `FeeRate` | a decimal string, with decimal places if necessary |
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Input {
    /// The name.
    pub name: &'static str,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
    /// The object whose members it has too: the wallet context, for the context of a recovery.
    pub base: Option<&'static str>,
    /// The names of the members that its base does not have.
    pub members: &'static [&'static str],
    /// The type of each member, and the lines of its documentation.
    pub types: &'static [(&'static str, &'static [&'static str])],
}

/// Declares a list of objects, each as `/// doc` `Name { /// doc` `field: Type, }`, or `Name: Base { .. }` for one that also has the members
/// of its base. Each is a type whose `MEMBERS` are the names of its own members.
macro_rules! declare {
    (@base) => { None };
    (@base $base:ident) => { Some(stringify!($base)) };
    ($list:ident: $($(#[doc = $doc:literal])* $name:ident $(: $base:ident)? {
        $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[doc = $doc])*
            pub(crate) struct $name;

            impl $name {
                /// The names of the members, without those of the base.
                pub(crate) const MEMBERS: &'static [&'static str] = &[$(stringify!($field)),*];
            }
        )*

        pub(crate) const $list: &[$crate::Input] = &[$($crate::Input {
            name: stringify!($name),
            doc: &[$($doc),*],
            base: $crate::family::inputs::declare!(@base $($base)?),
            members: $name::MEMBERS,
            types: &[$((stringify!($type), &[$($field_doc),*])),*],
        }),*];
    };
}
pub(crate) use declare;

macro_rules! lists {
    ([] $($feature:literal $family:ident $module:ident,)*) => {
        /// The contexts of each family, then the signatures of each.
        const LISTS: &[&[&[Input]]] = &[
            $(#[cfg(feature = $feature)] <countersign::$module::$family as JsonFamily>::CONTEXTS,)*
            $(#[cfg(feature = $feature)] <countersign::$module::$family as JsonFamily>::SIGNATURES,)*
        ];
    };
}
for_each_family! { lists! [] }

/// Returns the objects that wallets pass in to this build, each once.
#[must_use]
pub fn inputs() -> Vec<&'static Input> {
    let mut inputs = Vec::<&Input>::new();
    for input in all() {
        if inputs.iter().all(|other| other.name != input.name) {
            inputs.push(input);
        }
    }
    inputs
}

fn all() -> impl Iterator<Item = &'static Input> {
    LISTS.iter().copied().flatten().copied().flatten()
}

/// Returns how numbers are written in the member with this name, wherever it is in a wallet context: as decimal text (`true`), or as JSON
/// integers. A language with integers of its own needs this to write a context.
#[must_use]
pub fn is_decimal_text(member: &str) -> bool {
    let is_text = |kind: &str| kind.split(|letter: char| !letter.is_alphanumeric()).any(|word| matches!(word, "Decimal" | "FeeRate"));
    all().any(|input| input.members.iter().zip(input.types).any(|(name, (kind, _))| *name == member && is_text(kind)))
}
