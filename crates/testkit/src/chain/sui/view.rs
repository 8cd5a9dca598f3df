//! Sui at a moment.

use countersign_core::U256;
use countersign_core::reader::{Answer, Request};
use countersign_sui::read;
use countersign_sui::sui_sdk_types::Address;

use super::{HEAD, Ledger, MAINNET, TESTNET, bytes, digest_of, made};
use crate::chain::view::{End, View, patch};

/// Answers the requests of one round.
pub(crate) fn moment(view: &View<'_>, requests: &[Request]) -> Vec<Answer> {
    let ledger = view.sui();
    requests.iter().map(|request| ledger.answer(request)).collect()
}

impl View<'_> {
    fn sui(&self) -> Ledger {
        // Sui counts milliseconds. It has a checkpoint four times a second.
        let checkpoint = |time: u64| HEAD + self.tempo.newest(time) / 250;
        let mut ledger = match self.htlc.ended {
            None => Ledger::funded(),
            Some((End::Redeemed(_), _)) => Ledger::ended("Redeemed"),
            Some((End::Refunded, _)) => Ledger::ended("Refunded"),
        };
        ledger.chain_id = if self.is_other_chain { MAINNET } else { TESTNET }.to_owned();
        (ledger.height, ledger.time) = (checkpoint(self.now), (self.now, 0));
        let Some(funded) = self.htlc.funded else {
            ledger.objects.remove(0);
            ledger.transactions.clear();
            return ledger;
        };
        let changed = self.htlc.ended.map_or(funded, |(_, at)| at);
        // A digest for each version of the object.
        let version = checkpoint(changed) % 200;
        let digest = digest_of(u8::try_from(version).unwrap() + 50);
        (ledger.objects[0].version, ledger.objects[0].digest) = (Some(checkpoint(changed)), Some(digest));
        ledger.transactions[0].checkpoint = Some(checkpoint(changed));
        let patches = self.sui_patches(funded * 1_000);
        ledger.objects[0].id = Some(self.sui_field());
        let mut texts = vec![&mut ledger.objects[0].contents];
        texts
            .extend(ledger.transactions[0].events.iter_mut().filter(|(kind, _)| kind.contains("AtomicSwap")).map(|(_, contents)| contents));
        for contents in texts {
            for (old, new) in &patches {
                if contents.windows(old.len()).any(|window| window == old) {
                    patch(contents, old, new);
                }
            }
        }
        if self.htlc.is_short {
            let (amount, less) = (self.sui_amount(), self.sui_amount() - 1);
            patch(&mut ledger.objects[0].contents, &amount.to_le_bytes(), &less.to_le_bytes());
        }
        ledger
    }

    fn sui_id(&self) -> [u8; 32] {
        hex::decode(self.terms.swap_id.trim_start_matches("0x")).unwrap().try_into().unwrap()
    }

    fn sui_amount(&self) -> u64 {
        self.terms.amount.try_into().unwrap()
    }

    fn sui_field(&self) -> Address {
        let registry = self.terms.htlc_registry.as_ref().unwrap().array().unwrap();
        let id = self.sui_id();
        read::field_id(Address::new(registry), &id)
    }

    /// Returns what differs between the order that the testkit has and this one.
    fn sui_patches(&self, initiated_at: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let order = &made()["order"];
        let made = |name: &str| bytes(&order[name]);
        let number = |name: &str| order[name].as_str().unwrap().parse::<u64>().unwrap();
        let wide = |number: u64| U256::from(number).to_le_bytes::<32>().to_vec();
        let id = self.sui_id().to_vec();
        vec![
            (bytes(&order["fields"][0]), self.sui_field().as_bytes().to_vec()),
            (bytes(&order["ids"][0]), id),
            (made("initiator"), self.terms.initiator.bytes().to_vec()),
            (made("redeemer"), self.terms.redeemer.bytes().to_vec()),
            (made("secret_hash"), self.terms.secret_hash.0.to_vec()),
            (made("secret"), self.secret.to_vec()),
            (number("amount").to_le_bytes().to_vec(), self.sui_amount().to_le_bytes().to_vec()),
            (wide(number("initiated_at")), wide(initiated_at)),
            (wide(number("timelock")), wide(self.terms.timelock)),
        ]
    }
}
