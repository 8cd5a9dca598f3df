//! What a PSBT lacks that some signers need.

use super::{Kind, Payment, Spend};

/// The most inputs that a text names.
const MAX_NAMED: usize = 8;

impl Payment {
    /// Returns what the PSBT lacks that hardware signers need, one text each, with the member of the wallet context that adds it. It is empty if
    /// every signer has what it needs.
    ///
    /// | missing | consequence |
    /// |---|---|
    /// | the key origin of an input | hardware signers do not find their key |
    /// | the previous transaction of a segwit version 0 input | signers that prove the amount refuse: another input could hide a higher fee |
    /// | the key origin of the change | hardware signers show it as a payment to somebody else |
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let known = || self.inputs.iter().zip(&self.psbt.inputs).enumerate();
        let open = |kind: &Kind| !matches!(kind, Kind::Presigned(_));
        let no_origin = known()
            .filter(|(_, (input, known))| open(&input.kind) && known.bip32_derivation.is_empty() && known.tap_key_origins.is_empty());
        let no_previous = known().filter(|(_, (input, known))| {
            matches!(input.kind, Kind::Wallet(Spend::P2wpkh | Spend::P2shP2wpkh { .. })) && known.non_witness_utxo.is_none()
        });
        let change = self.change.and_then(|index| self.psbt.outputs.get(index));
        let mut gaps = Vec::new();
        let no_origin: Vec<_> = no_origin.map(|(index, _)| index).collect();
        if !no_origin.is_empty() {
            gaps.push(format!(
                "no key origin of {} (`origins`): Coldcard, Ledger, Trezor and other hardware signers do not find their key; a wallet program \
                 that watches the coins, such as Sparrow, adds it",
                inputs(&no_origin)
            ));
        }
        let no_previous: Vec<_> = no_previous.map(|(index, _)| index).collect();
        if !no_previous.is_empty() {
            gaps.push(format!(
                "no previous transaction of {} (`previous_tx`): Trezor and BitBox02 refuse, and others warn, because the amount is not proven",
                inputs(&no_previous)
            ));
        }
        if change.is_some_and(|known| known.bip32_derivation.is_empty() && known.tap_key_origins.is_empty()) {
            gaps.push("no key origin of the change (`origins`): hardware signers show it as a payment to somebody else".to_owned());
        }
        gaps
    }
}

fn inputs(indices: &[usize]) -> String {
    let named: Vec<_> = indices.iter().take(MAX_NAMED).map(usize::to_string).collect();
    let more = indices.len().saturating_sub(MAX_NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("input {}{more}", named.join(", "))
}
