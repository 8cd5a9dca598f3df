//! Wallet contexts of any family, for wallets that do not know at compile time which family an order has.

use countersign_core::family::ChainFamily;
use countersign_core::{Code, Family, Refusal};

use crate::states::{Unsigned, Verified};

type ContextOf<F> = <F as ChainFamily>::Context;

any_family! {
    /// What only the wallet knows and [`Verified::prepare`] needs, of any family: nonce and fees, a blockhash, or coins. The page of each
    /// family has its fields, and the [guide](crate::guide::wallets) what holds for all of them.
    ///
    /// The context of each family converts into it, and so does the `TxContext` of a family that has several funding paths, which is then the
    /// self-funded one. As JSON it is an object with the family's name as its only member.
    ///
    #[cfg_attr(feature = "evm", doc = "```")]
    #[cfg_attr(not(feature = "evm"), doc = "```ignore")]
    /// use countersign::{Context, CreateOrder, Policy, Proposal, Registry, evm};
    ///
    /// let registry: Registry = include_str!("../doc/registry.json").parse()?;
    /// let request: CreateOrder = include_str!("../doc/request.json").parse()?;
    /// let response = include_str!("../doc/response.json");
    /// let proposal = Proposal::new(&request, response.as_bytes());
    /// let order = countersign::verify(proposal, &registry, &Policy::default())?;
    ///
    /// // Nonce 891, at most 30 gwei per gas, 1 gwei of it for the proposer.
    /// let context = Context::from(evm::TxContext::eip1559(891, 30_000_000_000, 1_000_000_000));
    /// let unsigned = order.prepare(&context)?;
    /// assert!(!unsigned.requests().is_empty());
    ///
    /// // It can be stored, and is read by later versions of this library.
    /// let kept = serde_json::to_string(&context)?;
    /// assert_eq!(serde_json::from_str::<Context>(&kept)?, context);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[allow(clippy::large_enum_variant, reason = "a wallet makes one for each order")]
    Context = ContextOf
}

/// Makes the transactions of each family convert, and then its funding paths.
macro_rules! from_contexts {
    ([] $($feature:literal $family:ident $module:ident,)*) => {
        from_contexts! { [] $($feature crate::$module::TxContext => $family;)* }
    };
    ([] $($feature:literal $own:ty => $family:ident;)*) => {
        $(
            #[cfg(feature = $feature)]
            impl From<$own> for Context {
                fn from(context: $own) -> Self {
                    Self::$family(context.into())
                }
            }
        )*
    };
}

for_each! { from_contexts! [] }
for_each_path! { from_contexts! [] }

macro_rules! gasless {
    ([$of:expr] $($feature:literal $family:ident $module:ident,)*) => {
        match $of {
            $(#[cfg(feature = $feature)] Family::$family => crate::$module::$family::gasless().map(Self::$family),)*
            _ => None,
        }
    };
}

impl Context {
    /// Returns the context of the gasless path, which needs nothing from the wallet; `None` for a family without such a path, and for one that
    /// this build has no code for.
    #[must_use]
    pub fn gasless(family: Family) -> Option<Self> {
        for_each! { gasless! [family] }
    }

    /// Returns the family that the context is for.
    #[must_use]
    pub const fn family(&self) -> Family {
        each_family!(self, Self => |_context, family: Family| family)
    }
}

impl Verified {
    /// Chooses the funding path and adds what only the wallet knows: see [`VerifiedOrder::prepare`](crate::VerifiedOrder::prepare). The order
    /// can be prepared again when fees change.
    ///
    /// # Errors
    ///
    /// As there, or [`Code::WalletChainMismatch`] if the context is of another family.
    pub fn prepare(&self, context: &Context) -> Result<Unsigned, Refusal> {
        let other = || {
            let refusal = Refusal::new(Code::WalletChainMismatch, "").with_reason("the wallet context is of another chain family");
            Err(refusal.with_expected(self.family()).with_actual(context.family()))
        };
        for_each! {
            match_both! [(self, context), |order: Self, context: Context| order.prepare(context.clone()).map(Unsigned::from), other()]
        }
    }
}
