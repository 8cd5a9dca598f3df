//! What `recover`, `refund` and `redeem` take for a transaction of their own: its inputs, its key or signatures.

use countersign::Family;
use zeroize::Zeroizing;

use crate::attach::SignatureArgs;
use crate::failure::{Failure, usage};
use crate::input::WalletArgs;
use crate::key::{GivenKey, KeyArgs};
use crate::psbt::PsbtArgs;
use crate::session::Session;

/// The inputs of the transaction, and its key or signatures.
#[derive(clap::Args)]
pub(crate) struct SigningArgs {
    #[command(flatten)]
    pub(crate) wallet: WalletArgs,
    /// Bitcoin and Litecoin: an unspent output of the HTLC, as your node shows it, with its amount in base units. Can be given several
    /// times.
    #[arg(long, value_name = "TXID:INDEX:AMOUNT", conflicts_with = "wallet")]
    pub(super) funding: Vec<String>,
    /// Bitcoin and Litecoin: your address, which receives the coins.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "wallet")]
    pub(super) to: Option<String>,
    /// Bitcoin and Litecoin: the fee rate in base units per virtual byte. The fee is deducted from the payout.
    #[arg(long, value_name = "RATE", conflicts_with = "wallet")]
    fee_rate: Option<String>,
    #[command(flatten)]
    exceptions: ExceptionArgs,
    #[command(flatten)]
    pub(super) key: KeyArgs,
    #[command(flatten)]
    pub(super) signatures: SignatureArgs,
    #[command(flatten)]
    pub(super) psbt: PsbtArgs,
}

/// What the user accepts in spite of a rule. A wallet context has members with the same names.
#[derive(clap::Args)]
struct ExceptionArgs {
    /// Bitcoin and Litecoin: redeems less than the order's amount, or several outputs at once, although the secret becomes public.
    #[arg(long, conflicts_with = "wallet")]
    accept_less: bool,
    /// Bitcoin and Litecoin: redeems at a fee rate that not every node relays, although nodes see the secret.
    #[arg(long, conflicts_with = "wallet")]
    accept_low_fee: bool,
    /// Bitcoin and Litecoin: pays a fee that is higher than what is paid out.
    #[arg(long, conflicts_with = "wallet")]
    accept_high_fee: bool,
}

impl ExceptionArgs {
    const fn is_any(&self) -> bool {
        self.accept_less || self.accept_low_fee || self.accept_high_fee
    }
}

impl SigningArgs {
    /// Returns the wallet context: the given one, or on Bitcoin-like chains one that is built from the flags.
    pub(super) fn wallet(&self, family: Family) -> Result<Zeroizing<Vec<u8>>, Failure> {
        if let Some(text) = self.wallet.read()? {
            return Ok(text);
        }
        if family != Family::Bitcoin {
            return Err(usage(format_args!(
                "no wallet context: pass one with --wallet, or connect the chain with --node; `countersign recover --help` shows the members for \
                 {family}"
            )));
        }
        let to = self.to.as_deref().ok_or_else(|| usage("no address: pass yours with --to, or a wallet context with --wallet"))?;
        let fee_rate = self.fee_rate.as_deref().ok_or_else(|| usage("no fee rate: pass one with --fee-rate"))?;
        let funding = &self.funding;
        let ExceptionArgs { accept_less, accept_low_fee, accept_high_fee } = self.exceptions;
        let context = serde_json::json!({
            "funding": funding,
            "to": to,
            "fee_rate": fee_rate,
            "accept_less": accept_less,
            "accept_low_fee": accept_low_fee,
            "accept_high_fee": accept_high_fee,
        });
        serde_json::to_vec(&context).map(Zeroizing::new).map_err(usage)
    }

    /// Returns whether the inputs of the transaction are given, so that they are not read from the chain.
    pub(crate) fn has_wallet(&self) -> bool {
        self.wallet.wallet.is_some() || !self.funding.is_empty() || self.fee_rate.is_some() || self.exceptions.is_any()
    }

    /// Checks that nothing but a key is given, and a key only if a chain is connected. Everything else is for transactions that are built
    /// offline.
    pub(crate) fn check_key_only(&self, is_connected: bool) -> Result<(), Failure> {
        let is_bitcoin =
            !self.funding.is_empty() || self.to.is_some() || self.fee_rate.is_some() || self.exceptions.is_any() || self.psbt.is_named();
        if is_bitcoin || self.wallet.wallet.is_some() || !self.signatures.is_empty() {
            return Err(usage("a wallet context, Bitcoin flags or signatures are only used with --self"));
        }
        if self.key.is_named() && !is_connected {
            return Err(usage("a key is only used with --self, or with a connection to the chain (--node)"));
        }
        Ok(())
    }

    /// Reads the key; `None` if none is given.
    pub(crate) fn key(&self, session: &Session) -> Result<Option<GivenKey>, Failure> {
        self.key.read(session)
    }
}
