//! Hash cards: what a device that signs blindly shows, in exactly the form in which it shows it, so that the owner can compare.
//!
//! Most devices do not decode the payloads of a swap. They show a hash, each in its own spelling: one Ledger app writes upper case, the
//! next one lower case, the next one base58. A [`HashCard`] has these texts for one signing request. Nothing here is hashed again except
//! where a device shows a hash that is not the one that is signed.
//!
//! A form that no source establishes is left out. Specification and sources: `docs/spec/hashes.md`.

#[cfg(feature = "evm")]
mod safe;

use std::fmt;

#[cfg(feature = "evm")]
pub use self::safe::{Safe, SafeTxGas, SafeVersion, UnknownSafeTxGas, UnknownSafeVersion};

use countersign::{Payload, RequestId, SigningRequest, Unsigned};
use serde::{Serialize, Serializer};

/// What shows a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Device {
    /// The Ethereum app of Ledger devices.
    LedgerEthereum,
    /// The Tron app of Ledger devices.
    LedgerTron,
    /// The Tron app of Ledger devices, where a wallet sends it the hash instead of the transaction.
    LedgerTronByHash,
    /// The Starknet app of Ledger devices.
    LedgerStarknet,
    /// The Solana app of Ledger devices.
    LedgerSolana,
    /// The Sui app of Ledger devices.
    LedgerSui,
    /// The Bitcoin app of Ledger devices.
    LedgerBitcoin,
    /// Trezor Safe devices and Trezor Model T.
    TrezorCore,
    /// Trezor Model One.
    TrezorOne,
    /// Safe, and the device of the owner that signs for it. Only [`Safe::add_to`] adds it.
    Safe,
    /// No device: the form that software wallets, SDKs and explorers use.
    Software,
}

impl Device {
    /// Returns the name that people know.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LedgerEthereum => "Ledger, Ethereum app",
            Self::LedgerTron => "Ledger, Tron app",
            Self::LedgerTronByHash => "Ledger, Tron app, sign by hash",
            Self::LedgerStarknet => "Ledger, Starknet app",
            Self::LedgerSolana => "Ledger, Solana app",
            Self::LedgerSui => "Ledger, Sui app",
            Self::LedgerBitcoin => "Ledger, Bitcoin app",
            Self::TrezorCore => "Trezor Safe, Trezor Model T",
            Self::TrezorOne => "Trezor Model One",
            Self::Safe => "Safe, and its owner's device",
            Self::Software => "software",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Device {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One value on a device's screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShownValue {
    /// What shows it.
    pub device: Device,
    /// The label beside it.
    pub label: &'static str,
    /// The value, character by character as it is shown. Devices break long values into lines.
    pub value: String,
}

/// What devices show for one signing request. Its text form has one line for each value, below a line for each device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HashCard {
    /// Which payload of the order it is for.
    pub request: RequestId,
    /// The account that signs.
    pub signer: String,
    /// The values, those of one device together.
    pub values: Vec<ShownValue>,
}

impl HashCard {
    fn new<P>(request: &SigningRequest<P>) -> Self {
        Self { request: request.id, signer: request.signer.clone(), values: Vec::new() }
    }

    #[must_use]
    fn with(mut self, device: Device, label: &'static str, value: impl Into<String>) -> Self {
        self.add(device, label, value);
        self
    }

    fn add(&mut self, device: Device, label: &'static str, value: impl Into<String>) {
        self.values.push(ShownValue { device, label, value: value.into() });
    }
}

impl fmt::Display for HashCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} by {}", self.request, self.signer)?;
        let mut device = None;
        for value in &self.values {
            if device.replace(value.device) != Some(value.device) {
                writeln!(f, "  {}", value.device)?;
            }
            writeln!(f, "    {}: {}", value.label, value.value)?;
        }
        Ok(())
    }
}

/// Returns a card for each signing request of a prepared order, in their order.
///
/// On Bitcoin-like chains there is one card for the whole transaction, because devices show its outputs once, however many inputs they
/// sign. A payload for which no form is established has no card.
#[must_use]
pub fn hash_cards(order: &Unsigned) -> Vec<HashCard> {
    let requests = order.requests();
    if let Some(card) = bitcoin_card(order, &requests) {
        return vec![card];
    }
    requests.iter().map(card).filter(|card| !card.values.is_empty()).collect()
}

fn card(request: &SigningRequest<Payload>) -> HashCard {
    let card = HashCard::new(request);
    match &request.payload {
        #[cfg(feature = "evm")]
        Payload::Evm(countersign::evm::Payload::Transaction(_)) => {
            card.with(Device::LedgerEthereum, "Transaction hash", lower(&request.digest))
        }
        #[cfg(feature = "evm")]
        Payload::Evm(_) => typed_data(card, Device::LedgerEthereum, request),
        #[cfg(feature = "tron")]
        Payload::Tron(countersign::tron::Payload::Transaction(transaction)) => {
            let card = tron_call(card, &transaction.trigger);
            let card = card.with(Device::LedgerTronByHash, "Hash", hex::encode_upper(&request.digest));
            card.with(Device::Software, "Transaction id", hex::encode(&request.digest))
        }
        #[cfg(feature = "tron")]
        Payload::Tron(_) => typed_data(card, Device::LedgerTron, request),
        #[cfg(feature = "starknet")]
        Payload::Starknet(payload) => {
            let (label, software) = match payload {
                countersign::starknet::Payload::Invoke(_) => ("Transaction Hash", "Transaction hash"),
                _ => ("Hash", "Message hash"),
            };
            // SDKs write a felt without leading zeros.
            let digits = hex::encode(&request.digest);
            let card = card.with(Device::LedgerStarknet, label, hex::encode_upper(&request.digest));
            card.with(Device::Software, software, format!("0x{}", digits.trim_start_matches('0')))
        }
        #[cfg(feature = "solana")]
        Payload::Solana(_) => {
            use sha2::Digest as _;
            card.with(Device::LedgerSolana, "Message Hash", bs58::encode(sha2::Sha256::digest(&request.message)).into_string())
        }
        #[cfg(feature = "sui")]
        Payload::Sui(_) => card.with(Device::LedgerSui, "Transaction hash", lower(&request.digest)),
        _ => card,
    }
}

#[cfg(any(feature = "evm", feature = "sui", feature = "tron"))]
fn lower(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// Adds the hashes of EIP-712 or TIP-712 typed data. They are the two parts of the preimage `1901 | domain hash | message hash`.
#[cfg(any(feature = "evm", feature = "tron"))]
fn typed_data(card: HashCard, ledger: Device, request: &SigningRequest<Payload>) -> HashCard {
    let (Some(domain), Some(message)) = (request.message.get(2..34), request.message.get(34..66)) else { return card };
    let upper = |bytes: &[u8]| format!("0x{}", hex::encode_upper(bytes));
    let mut card = card.with(ledger, "Domain hash", upper(domain)).with(ledger, "Message hash", upper(message));
    // What Trezor shows of messages of Tron is not established.
    if ledger == Device::LedgerEthereum {
        card = card
            .with(Device::TrezorCore, "Confirm message hash", lower(message))
            .with(Device::TrezorOne, "EIP-712 domain hash", hex::encode_upper(domain))
            .with(Device::TrezorOne, "EIP-712 message hash", hex::encode_upper(message));
    }
    let card = card.with(Device::Software, "Domain separator", lower(domain)).with(Device::Software, "Struct hash", lower(message));
    card.with(Device::Software, "Digest", lower(&request.digest))
}

/// Adds what the Tron app shows of a call that it does not know. It knows `approve` and `transfer`, and shows no hash of those either.
#[cfg(feature = "tron")]
fn tron_call(card: HashCard, call: &countersign::tron::transaction::protocol::TriggerSmartContract) -> HashCard {
    const KNOWN: [[u8; 4]; 2] = [[0x09, 0x5e, 0xa7, 0xb3], [0xa9, 0x05, 0x9c, 0xbb]];
    let contract = <[u8; 21]>::try_from(call.contract_address.as_slice()).ok().and_then(countersign::tron::Address::from_prefixed);
    let selector = call.data.get(..4).filter(|selector| !KNOWN.iter().any(|known| known == selector));
    let (Some(contract), Some(selector)) = (contract, selector) else { return card };
    card.with(Device::LedgerTron, "Contract", contract.to_string()).with(Device::LedgerTron, "Selector", hex::encode(selector))
}

#[cfg(not(feature = "bitcoin"))]
fn bitcoin_card(_: &Unsigned, _: &[SigningRequest<Payload>]) -> Option<HashCard> {
    None
}

/// Returns the card of a transaction of a Bitcoin-like chain: its outputs and its fee. Devices show no hash of it.
#[cfg(feature = "bitcoin")]
fn bitcoin_card(order: &Unsigned, requests: &[SigningRequest<Payload>]) -> Option<HashCard> {
    use countersign::bitcoin::address::Chain;
    use countersign::chains::profile::known_chain;
    use countersign::chains::{BitcoinNet, Coin, Network};

    let request = requests.first()?;
    let (Unsigned::Bitcoin(order), Payload::Bitcoin(payload)) = (order, &request.payload) else { return None };
    let by_name = || Chain::from_network(&Network::parse(known_chain(order.chain())?.id).ok()?);
    let chain = order.verified().map(|order| order.deposit().chain).or_else(by_name)?;
    let device = match chain.coin {
        Coin::Bitcoin => Device::LedgerBitcoin,
        _ => Device::Software,
    };
    let symbol = if device == Device::LedgerBitcoin && chain.net != BitcoinNet::Main { "TEST" } else { chain.symbol() };
    let amount = |amount: countersign::bitcoin::bitcoin::Amount| {
        let text = amount.to_string_in(countersign::bitcoin::bitcoin::Denomination::Bitcoin);
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text} {symbol}")
    };
    let mut card = HashCard::new(request);
    for output in &payload.psbt.unsigned_tx.output {
        card = card.with(device, "Amount", amount(output.value)).with(device, "To", chain.format_script(&output.script_pubkey));
    }
    Some(card.with(device, "Fees", amount(payload.psbt.fee().ok()?)))
}
