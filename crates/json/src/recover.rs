//! Prepares recoveries with a wallet context in JSON (`docs/spec/batch.md#recovery-contexts`).
//!
//! The context has the members of the family's wallet context, and `sender`: the account that sends and pays for the transaction, by
//! default the one that is paid. The name is the same on every account chain; on Solana it is the fee payer.
//!
//! | family | members |
//! |---|---|
//! | EVM | `nonce`, `max_fee_per_gas` and `max_priority_fee_per_gas` or `gas_price`, `chain_id`, `gas_limit`; `reset_approval` has no effect |
//! | Tron | `ref_block_bytes`, `ref_block_hash`, `expiration`, `timestamp`, `chain_id`, `fee_limit` in sun; `reset_approval` has no effect |
//! | Starknet | `nonce`, `resource_bounds`, `chain_id`, `tip`, `public_key`, `cairo_version`, `paymaster_data`, and the other members of the wallet context |
//! | Solana | `recent_blockhash` or `nonce_account` and `nonce`, `last_valid_block_height`, `block_height`, `rent_sponsor`: who paid the rent of an SPL swap and gets it back; `config`: the limits of a message of version 1 |
//! | Sui | `gas_price`, `gas_budget`, `gas_payment`, `sponsor`, `expiration_epoch`, `valid_during`, `function_names`: `current` or `older` |
//! | Bitcoin | `funding`: outputs of the HTLC as `<txid>:<index>:<base units>`; `to`; `fee_rate` in sat/vB; optionally `utxos` and `change_address` of coins that pay the fee, and `origins` |
//!
//! `accept_low_fee` allows a redemption whose fee is so low that nodes may not mine it, although they see its secret. On Bitcoin-like chains
//! `accept_less` allows one that takes less than the amount, and `accept_high_fee` a fee above the payout.
//!
//! Each may also have `secret_key`, which is not read here. A member with another name is refused, because a misspelt limit or
//! destination would silently be ignored.

use countersign::recover::Recovery;
use countersign::{Code, Policy, Refusal, Unsigned, UnsignedOrder, report::Origin};
use countersign_core::json::{Cursor, Members};

use crate::family::inputs;

/// Calls the function of this module for the family of a recovery.
macro_rules! prepare {
    ([$recovery:ident $wallet:ident $members:ident $policy:ident] $($feature:literal $family:ident $module:ident,)*) => {
        match $recovery {
            $(#[cfg(feature = $feature)] Recovery::$family(recovery) => $module(recovery, $wallet, &$members, $policy).map(Unsigned::from),)*
            other => Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other.family())),
        }
    };
}

/// Reads a wallet context (`docs/spec/batch.md#recovery-contexts`) and prepares a recovery with it, within the limits of the policy.
///
/// # Errors
///
/// A [`Refusal`] at the member of `/wallet` that is missing, unknown, malformed or invalid; [`Code::FundingMismatch`],
/// [`Code::FeeTooLow`] or [`Code::FeeAbovePayout`] for what the user has to accept explicitly; [`Code::WarningRefused`] for a warning that the policy refuses.
pub fn prepare_recovery(recovery: &Recovery, wallet: Cursor<'_, '_>, policy: &Policy) -> Result<Unsigned, Refusal> {
    let members = wallet.object()?;
    let order = countersign::for_each_family! { prepare! [recovery wallet members policy] }?;
    order.warnings().check_refused(&policy.refused_warnings)?;
    Ok(order)
}

#[cfg(feature = "evm")]
fn evm(
    recovery: &countersign::evm::recover::Recovery,
    _: Cursor<'_, '_>,
    members: &Members<'_, '_>,
    policy: &Policy,
) -> Result<UnsignedOrder<countersign::evm::Evm>, Refusal> {
    use countersign::evm::address;

    only(members, inputs::EvmWallet::MEMBERS, inputs::EvmRecovery::MEMBERS)?;
    let mut calls = crate::family::evm::read_calls(members)?;
    calls.gas_limit = members.get("gas_limit").map(|cursor| crate::family::read_u64(cursor)).transpose()?;
    let sender = read_sender(members, recovery.to(), |cursor| address::read(recovery.chain_id(), cursor))?;
    recovery.clone().with_policy(policy).prepare(calls.sent_by(sender).with_low_fee(accepts(members, "accept_low_fee")?)).map_err(in_wallet)
}

#[cfg(feature = "tron")]
fn tron(
    recovery: &countersign::tron::recover::Recovery,
    _: Cursor<'_, '_>,
    members: &Members<'_, '_>,
    policy: &Policy,
) -> Result<UnsignedOrder<countersign::tron::Tron>, Refusal> {
    use countersign::tron::address;

    only(members, inputs::TronWallet::MEMBERS, inputs::TronRecovery::MEMBERS)?;
    let mut calls = crate::family::tron::read_calls(members)?;
    calls.fee_limit = members.get("fee_limit").map(|cursor| crate::family::read_u64(cursor)).transpose()?;
    let sender = read_sender(members, recovery.to(), address::read)?;
    recovery.clone().with_policy(policy).prepare(calls.sent_by(sender).with_low_fee(accepts(members, "accept_low_fee")?)).map_err(in_wallet)
}

#[cfg(feature = "starknet")]
fn starknet(
    recovery: &countersign::starknet::recover::Recovery,
    _: Cursor<'_, '_>,
    members: &Members<'_, '_>,
    _: &Policy,
) -> Result<UnsignedOrder<countersign::starknet::Starknet>, Refusal> {
    use countersign::starknet::felt;

    only(members, inputs::StarknetWallet::MEMBERS, inputs::StarknetRecovery::MEMBERS)?;
    let execution = crate::family::starknet::read_execution(members)?;
    let sender = read_sender(members, recovery.to(), felt::read)?;
    recovery.prepare(execution.sent_by(sender).with_low_fee(accepts(members, "accept_low_fee")?)).map_err(in_wallet)
}

#[cfg(feature = "solana")]
fn solana(
    recovery: &countersign::solana::recover::Recovery,
    _: Cursor<'_, '_>,
    members: &Members<'_, '_>,
    policy: &Policy,
) -> Result<UnsignedOrder<countersign::solana::Solana>, Refusal> {
    use countersign::solana::address;

    let read = |cursor: Cursor<'_, '_>| address::parse(cursor.text()?).map_err(|error| cursor.refuse(error));
    only(members, inputs::SolanaWallet::MEMBERS, inputs::SolanaRecovery::MEMBERS)?;
    let path = crate::family::solana::read_self_funded(members)?;
    let sender = read_sender(members, recovery.to(), read)?;
    let mut recovery = recovery.clone().with_policy(policy);
    if let Some(cursor) = members.get("rent_sponsor") {
        recovery = recovery.with_sponsor(read(cursor)?);
    }
    if let Some(config) = members.get("config") {
        recovery = recovery.with_config(crate::family::solana::read_config(&config)?);
    }
    recovery.prepare(path.sent_by(sender).with_low_fee(accepts(members, "accept_low_fee")?)).map_err(in_wallet)
}

#[cfg(feature = "sui")]
fn sui(
    recovery: &countersign::sui::recover::Recovery,
    wallet: Cursor<'_, '_>,
    members: &Members<'_, '_>,
    _: &Policy,
) -> Result<UnsignedOrder<countersign::sui::Sui>, Refusal> {
    use countersign::sui::recover::FunctionNames;
    use countersign::sui::{Sui, address};

    only(members, inputs::SuiWallet::MEMBERS, inputs::SuiRecovery::MEMBERS)?;
    let names = match members.get("function_names") {
        None => FunctionNames::default(),
        Some(cursor) => match cursor.text()? {
            "current" => FunctionNames::Current,
            "older" => FunctionNames::Older,
            _ => return Err(cursor.refuse(Code::WrongType).with_expected("current or older")),
        },
    };
    let gas = <Sui as crate::JsonFamily>::read_wallet(wallet)?;
    let sender = read_sender(members, recovery.to(), address::read)?;
    recovery.clone().with_names(names).prepare(gas.sent_by(sender).with_low_fee(accepts(members, "accept_low_fee")?)).map_err(in_wallet)
}

#[cfg(feature = "bitcoin")]
fn bitcoin(
    recovery: &countersign::bitcoin::recover::Recovery,
    _: Cursor<'_, '_>,
    members: &Members<'_, '_>,
    policy: &Policy,
) -> Result<UnsignedOrder<countersign::bitcoin::Bitcoin>, Refusal> {
    // Only the holder of the HTLC's key can take the coins, so the context has no `sender`.
    only(members, &[], inputs::BitcoinRecovery::MEMBERS)?;
    let payout = crate::family::bitcoin::read_payout(members, policy)?;
    recovery.clone().with_policy(policy).prepare(payout).map_err(in_wallet)
}

/// Refuses every member except those of the family's wallet context (`funding`) and those that only a recovery has.
fn only(members: &Members<'_, '_>, funding: &[&str], recovery: &[&str]) -> Result<(), Refusal> {
    members
        .only(&[funding, recovery].concat())
        .map_err(|refusal| refusal.with_reason("the wallet context of a recovery has no such member"))
}

/// Reads whether the user accepts something in spite of a rule.
pub(crate) fn accepts(members: &Members<'_, '_>, member: &str) -> Result<bool, Refusal> {
    Ok(members.get(member).map(|cursor| cursor.bool()).transpose()?.unwrap_or(false))
}

/// Reads the account that sends the transaction. By default it is the one that is paid.
#[cfg(any(feature = "evm", feature = "solana", feature = "starknet", feature = "sui", feature = "tron"))]
fn read_sender<A>(members: &Members<'_, '_>, payee: A, read: impl FnOnce(Cursor<'_, '_>) -> Result<A, Refusal>) -> Result<A, Refusal> {
    members.get("sender").map_or(Ok(payee), read)
}

/// Puts `/wallet` in front of a refusal's location, unless the fault is in the record, which the service wrote.
fn in_wallet(refusal: Refusal) -> Refusal {
    if refusal.origin() == Origin::Service { refusal } else { refusal.with_prefix("/wallet") }
}
