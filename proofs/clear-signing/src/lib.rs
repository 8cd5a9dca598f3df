#![doc = include_str!("../README.md")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use clear_signing::types::context::DescriptorContext;
use clear_signing::{
    DataProvider, Descriptor, DisplayEntry, DisplayItem, FormatOutcome, ResolvedDescriptor, TokenMeta, TransactionContext, eip712,
};

/// A wallet that knows only descriptors. It has no names for addresses, and no tokens except those in the
/// descriptors.
#[derive(Debug, Default)]
pub struct Wallet {
    calls: Vec<ResolvedDescriptor>,
    messages: Vec<ResolvedDescriptor>,
    tokens: BTreeMap<(u64, String), (String, u8)>,
}

/// The renderer's output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// The intent, in a few words.
    pub intent: String,
    /// The intent as a sentence with values.
    pub sentence: Option<String>,
    /// The labels with their values, in order.
    pub lines: Vec<(String, String)>,
}

/// A contract call.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_structs, reason = "the tests fill in every member")]
pub struct Call<'a> {
    /// The EIP-155 chain id.
    pub chain_id: u64,
    /// The contract's address.
    pub to: String,
    /// The sender's address.
    pub from: String,
    /// The value in wei, big-endian.
    pub value: [u8; 32],
    /// The selector and arguments.
    pub data: &'a [u8],
}

impl Wallet {
    /// Loads descriptors.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the renderer cannot parse a descriptor.
    pub fn load<'f>(files: impl IntoIterator<Item = &'f str>) -> Result<Self, String> {
        let mut wallet = Self::default();
        for file in files {
            let descriptor = Descriptor::from_json(file).map_err(|error| error.to_string())?;
            let [deployment] = descriptor.context.deployments() else { return Err("not exactly one deployment".to_owned()) };
            let (chain_id, address) = (deployment.chain_id, deployment.address.clone());
            if let Some(token) = &descriptor.metadata.token {
                let (Some(ticker), Some(decimals)) = (&token.ticker, token.decimals) else {
                    return Err("the token lacks a ticker or decimals".to_owned());
                };
                wallet.tokens.insert((chain_id, address.to_lowercase()), (ticker.clone(), decimals));
            }
            let list = match descriptor.context {
                DescriptorContext::Contract(_) => &mut wallet.calls,
                DescriptorContext::Eip712(_) => &mut wallet.messages,
            };
            list.push(ResolvedDescriptor { descriptor, chain_id, address });
        }
        Ok(wallet)
    }

    /// Renders a call.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the renderer does not support the call.
    pub fn show_call(&self, call: &Call<'_>) -> Result<Shown, String> {
        let context = TransactionContext {
            chain_id: call.chain_id,
            to: &call.to,
            calldata: call.data,
            value: Some(&call.value),
            from: Some(&call.from),
            implementation_address: None,
        };
        let outcome = wait(clear_signing::format_calldata(&self.calls, &context, self))?;
        shown(outcome.map_err(|error| format!("{error:?}"))?)
    }

    /// Renders typed data that an account is about to sign.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the renderer does not support the message.
    pub fn show_message(&self, typed_data: &serde_json::Value, from: &str) -> Result<Shown, String> {
        let mut data: eip712::TypedData = serde_json::from_value(typed_data.clone()).map_err(|error| error.to_string())?;
        data.container = Some(eip712::TypedDataContainer { from: Some(from.to_owned()) });
        let outcome = wait(clear_signing::format_typed_data(&self.messages, &data, self))?;
        shown(outcome.map_err(|error| format!("{error:?}"))?)
    }
}

impl DataProvider for Wallet {
    fn resolve_token(&self, chain_id: u64, address: &str) -> Pin<Box<dyn Future<Output = Option<TokenMeta>> + Send + '_>> {
        let token = self.tokens.get(&(chain_id, address.to_lowercase())).cloned();
        Box::pin(async move { token.map(|(symbol, decimals)| TokenMeta { name: symbol.clone(), symbol, decimals }) })
    }
}

fn wait<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    Ok(runtime.block_on(future))
}

/// Returns the rendered values. Fails if the renderer fell back to raw data or reported a diagnostic.
fn shown(outcome: FormatOutcome) -> Result<Shown, String> {
    if !outcome.is_clear_signed() || !outcome.diagnostics().is_empty() {
        return Err(format!("{:?} {:?}", outcome.fallback_reason(), outcome.diagnostics()));
    }
    let model = outcome.into_model();
    let mut lines = Vec::new();
    for entry in model.entries {
        let DisplayEntry::Item(DisplayItem { label, value }) = entry else { return Err("a group".to_owned()) };
        lines.push((label, value));
    }
    Ok(Shown { intent: model.intent, sentence: model.interpolated_intent, lines })
}
