//! The records of the interface: the structs of `countersign_json::objects`, as UniFFI needs them declared.

use countersign_json::for_each_shape;
use countersign_json::objects::words::{Code, Family, HtlcState, PayloadKind, Role, Scheme, Severity, TimelockUnit, ValueKind};
use countersign_json::objects::{self, Convert};

/// Bytes are bytes in every language.
type Hex = Vec<u8>;
/// No language that UniFFI supports has an integer of 256 bits that it could be.
type Decimal = String;

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl Convert<$name> for objects::$name {
                fn convert(self) -> $name {
                    $name { $($field: self.$field.convert(),)* }
                }
            }
        )*
    };
}
for_each_shape! { declare }
