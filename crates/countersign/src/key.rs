//! Keys of any family, for wallets that keep keys as text.

use countersign_core::family::ChainFamily;
use countersign_core::{Account, Code, Family, Refusal};

type KeyOf<F> = <F as ChainFamily>::Key;

any_family! {
    /// A key that signs locally, of any family: [`Unsigned::sign`](crate::Unsigned::sign) takes it. Wiped on drop, never printed. A key that
    /// a wallet has as bytes is the family's own, such as `evm::Key`, in this enum.
    ///
    #[cfg_attr(feature = "evm", doc = "```")]
    #[cfg_attr(not(feature = "evm"), doc = "```ignore")]
    /// use countersign::{Family, Key};
    ///
    /// let text = "0xf9900aa163b64dbaeb472abe7d918ada7c5a7b5021ab3f2bc709a3758da94fd8";
    /// let key = Key::parse(Family::Evm, text)?;
    /// let account = key.account().expect("an EVM key has one account");
    /// assert_eq!(account.to_string(), "0x777877C6AEe64Fd401473fCC1b1d299A9Fcc77dA");
    /// # Ok::<(), countersign::Refusal>(())
    /// ```
    #[allow(clippy::large_enum_variant, reason = "a wallet holds a few keys")]
    Key = KeyOf
}

macro_rules! account {
    ([$key:expr] $($feature:literal $family:ident $module:ident,)*) => {
        match $key { $(#[cfg(feature = $feature)] Self::$family(key) => crate::$module::$family::account(key),)* }
    };
}

impl Key {
    /// Parses a key in the usual text form of a family.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`], never with any part of the text; [`Code::UnsupportedFamily`] if this build has no code for the family.
    pub fn parse(family: Family, text: &str) -> Result<Self, Refusal> {
        let unsupported = |family| Refusal::new(Code::UnsupportedFamily, "").with_actual(family);
        let key = for_each! { by_family! [family, |wrap: Self| text.parse().map(wrap), other => return Err(unsupported(other))] };
        key.map_err(|error| Refusal::new(error, ""))
    }

    /// Returns the account that the key controls. `None` on Starknet, where the account does not follow from the key, and on Bitcoin-like
    /// chains, where one key has several addresses.
    #[must_use]
    pub fn account(&self) -> Option<Account> {
        for_each! { account! [self] }
    }
}
