//! The list of families, and what is generated from it: one variant or one arm for each family that this build has code for. With it are
//! the families' crates as modules, and their funding paths.

/// Bitcoin and Litecoin: HTLC addresses recomputed from the terms, PSBTs, refund and redemption.
#[cfg(feature = "bitcoin")]
#[doc(inline)]
pub use countersign_bitcoin as bitcoin;
/// EVM chains: EIP-1559 and legacy calls, EIP-712 typed data, recovery.
#[cfg(feature = "evm")]
#[doc(inline)]
pub use countersign_evm as evm;
/// Solana: transactions with legacy messages and those of version 0 and 1, gasless co-signing, recovery.
#[cfg(feature = "solana-family")]
#[doc(inline)]
pub use countersign_solana as solana;
/// Starknet: invoke transactions of version 3, SNIP-12 typed data, recovery.
#[cfg(feature = "starknet")]
#[doc(inline)]
pub use countersign_starknet as starknet;
/// Sui: programmable transactions, also sponsored ones, gas coins, recovery.
#[cfg(feature = "sui")]
#[doc(inline)]
pub use countersign_sui as sui;
/// Tron: `TriggerSmartContract` transactions, TIP-712 typed data, recovery.
#[cfg(feature = "tron")]
#[doc(inline)]
pub use countersign_tron as tron;

/// Calls a macro with one row for each family whose wallet context is a funding path: its feature, the path, and its variant.
macro_rules! for_each_path {
    ($callback:ident! $arguments:tt) => {
        $callback! { $arguments
            "evm" countersign_evm::OwnerPath => Evm;
            "tron" countersign_core::FundingPath<countersign_tron::TxContext> => Tron;
            "starknet" countersign_starknet::KeyedPath => Starknet;
            "solana-family" countersign_core::FundingPath<countersign_solana::TxContext> => Solana;
        }
    };
}

/// Calls a macro with one row for each family: its feature, its variant in the enums of this crate, and its module in this crate.
///
/// The macro first gets the caller's own arguments, one token tree. Its `#[cfg(feature = ..)]` is that of the calling crate.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_family {
    ($callback:ident! $arguments:tt) => {
        $crate::families! { "solana" $callback! $arguments }
    };
}

/// The rows of [`for_each_family`]. The feature for Solana has another name in this crate, where the types of several versions are to choose
/// from.
#[doc(hidden)]
#[macro_export]
macro_rules! families {
    ($solana:literal $callback:ident! $arguments:tt) => {
        $callback! { $arguments
            "evm" Evm evm,
            "tron" Tron tron,
            "starknet" Starknet starknet,
            $solana Solana solana,
            "sui" Sui sui,
            "bitcoin" Bitcoin bitcoin,
        }
    };
}

/// [`for_each_family`] for this crate.
macro_rules! for_each {
    ($callback:ident! $arguments:tt) => {
        families! { "solana-family" $callback! $arguments }
    };
}

/// Declares an enum with one variant for each family, from the generic type `Of`: `= Of` applies it to the family, and `: Of<folder::own>` to
/// a type of the family's module.
macro_rules! any_family {
    ($(#[$attribute:meta])* $name:ident $($form:tt)*) => {
        for_each! { declare_any! [[$(#[$attribute])*] $name $($form)*] }
    };
}

macro_rules! declare_any {
    ([[$($attribute:tt)*] $name:ident = $of:ident] $($feature:literal $family:ident $module:ident,)*) => {
        declare_any! { [$($attribute)*] $name $($feature $family($of<crate::$module::$family>),)* }
    };
    ([[$($attribute:tt)*] $name:ident: $of:ident<$folder:ident::$own:ident>] $($feature:literal $family:ident $module:ident,)*) => {
        declare_any! { [$($attribute)*] $name $($feature $family($of<crate::$module::$folder::$own>),)* }
    };
    ([$($attribute:tt)*] $name:ident $($feature:literal $family:ident($type:ty),)*) => {
        $($attribute)*
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum $name {
            $(
                #[doc = concat!("The family `", stringify!($module), "`.")]
                #[cfg(feature = $feature)]
                $family($type),
            )*
        }
    };
}

/// Evaluates an expression for the family of a state. `$wrap` is that family's variant of the enum `$to`.
macro_rules! each_family {
    ($state:expr, $from:ident => |$order:ident| $body:expr) => {
        for_each! { match_state! [$state, $from, $order, $body] }
    };
    ($state:expr, $from:ident => |$order:ident, $wrap:ident: $to:ident| $body:expr) => {
        for_each! { match_state! [$state, $from, $order, $wrap, $to, $body] }
    };
}

macro_rules! match_state {
    ([$state:expr, $from:ident, $order:ident, $body:expr] $($feature:literal $family:ident $module:ident,)*) => {
        match $state { $(#[cfg(feature = $feature)] $from::$family($order) => $body,)* }
    };
    ([$state:expr, $from:ident, $order:ident, $wrap:ident, $to:ident, $body:expr] $($feature:literal $family:ident $module:ident,)*) => {
        match $state {
            $(
                #[cfg(feature = $feature)]
                $from::$family($order) => {
                    let $wrap = $to::$family;
                    $body
                }
            )*
        }
    };
}

/// Evaluates an expression for two states of the same family. `$otherwise` is for states of different families.
macro_rules! match_both {
    (
        [$states:expr, |$order:ident: $from:ident, $second:ident: $also:ident| $body:expr, $otherwise:expr]
        $($feature:literal $family:ident $module:ident,)*
    ) => {
        match $states {
            $(#[cfg(feature = $feature)] ($from::$family($order), $also::$family($second)) => $body,)*
            #[allow(unreachable_patterns, reason = "in a build with one family, all states are of the same")]
            _ => $otherwise,
        }
    };
}

/// Evaluates an expression for a family. `$wrap` is its variant of the enum `$to`, which also decides its types. `$otherwise` is for a
/// family that this build has no code for.
macro_rules! by_family {
    (
        [$value:expr, |$wrap:ident: $to:ident| $body:expr, $other:ident => $otherwise:expr]
        $($feature:literal $family:ident $module:ident,)*
    ) => {
        match $value {
            $(
                #[cfg(feature = $feature)]
                countersign_core::Family::$family => {
                    let $wrap = $to::$family;
                    $body
                }
            )*
            $other => $otherwise,
        }
    };
}
