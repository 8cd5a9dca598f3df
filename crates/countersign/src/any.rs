//! Dispatch: the pinned chain of the source asset decides the family, never the shape of the response.

use countersign_core::json::Node;
use countersign_core::wire::OrderRecord;
use countersign_core::{
    ChainFamily, Code, Documents, Family, Order, Policy, Proposed, Refusal, Registry, Signed, SigningRequest, ByteCoverage, Summary, Unsigned,
    Verified, Warnings,
};
use serde::{Serialize, Serializer};

#[cfg(not(any(feature = "bitcoin", feature = "evm", feature = "solana", feature = "starknet", feature = "sui", feature = "tron")))]
compile_error!("countersign needs at least one family: enable a feature");

macro_rules! families {
    ($($feature:literal $family:ident = $type:ty;)*) => {
        /// The families that this build has code for.
        pub const FAMILIES: &[Family] = &[$(#[cfg(feature = $feature)] Family::$family,)*];

        /// An order as it came, of any family.
        #[derive(Debug)]
        #[non_exhaustive]
        #[must_use = "a proposed order is worth nothing until it is verified"]
        pub enum AnyProposed<'d> {
            $(#[doc = concat!("Of family ", $feature, ".")] #[cfg(feature = $feature)] $family(Box<Proposed<'d, $type>>),)*
        }

        /// An order whose every byte is accounted for, of any family.
        #[derive(Debug)]
        #[non_exhaustive]
        #[must_use = "a verified order is there to be prepared"]
        pub enum AnyVerified {
            $(#[doc = concat!("Of family ", $feature, ".")] #[cfg(feature = $feature)] $family(Box<Verified<$type>>),)*
        }

        /// Payloads and digests for any signer, of any family.
        #[derive(Debug)]
        #[non_exhaustive]
        #[must_use = "an unsigned order is there to be signed"]
        pub enum AnyUnsigned {
            $(#[doc = concat!("Of family ", $feature, ".")] #[cfg(feature = $feature)] $family(Box<Unsigned<$type>>),)*
        }

        /// An order whose signatures are proven, of any family.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum AnySigned {
            $(#[doc = concat!("Of family ", $feature, ".")] #[cfg(feature = $feature)] $family(Box<Signed<$type>>),)*
        }

        /// Opens an order: reads the documents, pins both assets, and finds the family by the source asset's chain.
        ///
        /// # Errors
        ///
        /// [`Code::UnsupportedFamily`] if this build has no code for the family, else a [`Refusal`] at the first member
        /// that is malformed, unknown or contradictory.
        pub fn open<'d>(documents: Documents<'d>, registry: &'d Registry, policy: &'d Policy) -> Result<AnyProposed<'d>, Refusal> {
            let order = Order::open(documents, registry, policy)?;
            match order.family() {
                $(#[cfg(feature = $feature)] Family::$family => Proposed::new(order).map(|order| AnyProposed::$family(Box::new(order))),)*
                other => Err(Refusal::new(Code::UnsupportedFamily, "/request/source/asset").with_actual(other)),
            }
        }

        impl AnyProposed<'_> {
            /// See [`Proposed::verify`].
            ///
            /// # Errors
            ///
            /// A [`Refusal`] at the first member or byte that differs.
            pub fn verify(self) -> Result<AnyVerified, Refusal> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.verify().map(|order| AnyVerified::$family(Box::new(order))),)* }
            }

            /// See [`Proposed::follow`].
            ///
            /// # Errors
            ///
            /// A [`Refusal`] at the first member or byte that differs.
            pub fn follow(self) -> Result<(OrderRecord, Warnings), Refusal> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.follow(),)* }
            }
        }

        impl AnyVerified {
            /// The family that signs for it.
            #[must_use]
            pub const fn family(&self) -> Family {
                match self { $(#[cfg(feature = $feature)] Self::$family(_) => Family::$family,)* }
            }

            /// The order's id.
            #[must_use]
            pub fn order_id(&self) -> &str {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.order_id(),)* }
            }

            /// See [`Verified::summary`].
            #[must_use]
            pub fn summary(&self) -> Summary {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.summary(),)* }
            }

            /// See [`Verified::warnings`].
            #[must_use]
            pub const fn warnings(&self) -> &Warnings {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.warnings(),)* }
            }

            /// See [`Verified::coverage`].
            #[must_use]
            pub fn coverage(&self) -> Vec<ByteCoverage> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.coverage(),)* }
            }

            /// See [`Verified::prepare_json`].
            ///
            /// # Errors
            ///
            /// A [`Refusal`] at the member of `/wallet` that is missing, malformed or cannot be.
            pub fn prepare_json(self, wallet: Node<'_, '_>) -> Result<AnyUnsigned, Refusal> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.prepare_json(wallet).map(|order| AnyUnsigned::$family(Box::new(order))),)* }
            }
        }

        impl AnyUnsigned {
            /// The family that signs for it.
            #[must_use]
            pub const fn family(&self) -> Family {
                match self { $(#[cfg(feature = $feature)] Self::$family(_) => Family::$family,)* }
            }

            /// The order's id.
            #[must_use]
            pub fn order_id(&self) -> &str {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.order_id(),)* }
            }

            /// See [`Unsigned::summary`].
            #[must_use]
            pub fn summary(&self) -> Summary {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.summary(),)* }
            }

            /// See [`Unsigned::warnings`].
            #[must_use]
            pub const fn warnings(&self) -> &Warnings {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.warnings(),)* }
            }

            /// See [`Unsigned::requests`].
            #[must_use]
            pub fn requests(&self) -> Vec<SigningRequest> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.requests(),)* }
            }

            /// Signs everything with a local key in the family's usual text form.
            ///
            /// # Errors
            ///
            /// [`Code::KeyMalformed`] or [`Code::KeyMismatch`] at `/wallet/secret_key`, never with any part of the text.
            pub fn sign(self, key: &str) -> Result<AnySigned, Refusal> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => {
                    let key = <$type>::read_key(key).map_err(|code| Refusal::new(code, "/wallet/secret_key"))?;
                    order.sign(&key).map(|order| AnySigned::$family(Box::new(order)))
                })* }
            }

            /// Proves and attaches signatures from outside: an object from request name to signature.
            ///
            /// # Errors
            ///
            /// A [`Refusal`] at `/signatures/<request>`; [`Code::SignatureCount`] if there is none.
            pub fn attach_json(self, signatures: Node<'_, '_>) -> Result<AnySigned, Refusal> {
                let members = signatures.object()?;
                if members.keys().next().is_none() {
                    return Err(signatures.refuse(Code::SignatureCount));
                }
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => {
                    let given = members
                        .keys()
                        .zip(members.iter())
                        .map(|(name, node)| <$type>::read_signature(node).map(|signature| (name.to_owned(), signature)))
                        .collect::<Result<Vec<_>, _>>()?;
                    order.attach(given).map(|order| AnySigned::$family(Box::new(order)))
                })* }
            }
        }

        impl AnySigned {
            /// The family that signed.
            #[must_use]
            pub const fn family(&self) -> Family {
                match self { $(#[cfg(feature = $feature)] Self::$family(_) => Family::$family,)* }
            }

            /// The order's id.
            #[must_use]
            pub fn order_id(&self) -> &str {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.order_id(),)* }
            }

            /// See [`Signed::submission`].
            #[must_use]
            pub fn submission(&self) -> Option<String> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.submission(),)* }
            }

            /// See [`Signed::summary`].
            #[must_use]
            pub const fn summary(&self) -> &Summary {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.summary(),)* }
            }

            /// See [`Signed::warnings`].
            #[must_use]
            pub const fn warnings(&self) -> &Warnings {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.warnings(),)* }
            }
        }

        impl Serialize for AnyUnsigned {
            /// The batch contract's artefacts, without signatures.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.payloads().serialize(serializer),)* }
            }
        }

        impl Serialize for AnySigned {
            /// The batch contract's artefacts.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(#[cfg(feature = $feature)] Self::$family(order) => order.artefacts().serialize(serializer),)* }
            }
        }
    };
}

families! {
    "evm" Evm = countersign_evm::Evm;
    "tron" Tron = countersign_tron::Tron;
    "starknet" Starknet = countersign_starknet::Starknet;
    "solana" Solana = countersign_solana::Solana;
    "sui" Sui = countersign_sui::Sui;
    "bitcoin" Bitcoin = countersign_bitcoin::Bitcoin;
}
