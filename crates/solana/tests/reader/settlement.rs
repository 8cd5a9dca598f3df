//! The accounts of a redemption or a refund, before it is signed.

use countersign_core::chains::swap_id;
use countersign_core::{Code, Leg, OrderRecord, Refusal};
use countersign_solana::address::TOKEN_2022_PROGRAM;
use countersign_solana::reader::{Settlement, SettlementFacts, SettlementQuery};
use countersign_solana::recover::{self, Recovery};
use countersign_testkit::chain::solana::{Account, RENT, case, stored};

use super::others::drive_on;
use super::*;

/// The redemption or refund of the record of a form, which has the secret of these tests.
fn recovery(form: &str, redeems: bool) -> Recovery {
    let case = case(form);
    let mut order = case.json()["order"].take();
    let (htlc, swap) = swap_of(&of(form));
    order["source_swap"]["secret_hash"] = json!(SecretHash(swap.secret_hash).to_string());
    let chain = if htlc.token.is_some() { 101 } else { 103 };
    order["source_swap"]["swap_id"] = json!(SecretHash(swap_id::solana(chain, &swap.secret_hash, swap.initiator.as_ref())).to_string());
    let record = OrderRecord::from_json(order.to_string().as_bytes()).unwrap();
    let made = if redeems {
        recover::redeem(&record, Leg::Source, &SECRET, case.registry)
    } else {
        recover::refund(&record, Leg::Source, case.registry)
    };
    made.unwrap()
}

/// An open swap whose timelock has passed, and its recovery.
struct Scene {
    recovery: Recovery,
    chain: Chain,
    htlc: Program,
    swap: HtlcAccount,
}

impl Scene {
    fn new(form: &str, redeems: bool) -> Self {
        let terms = of(form);
        let (recovery, (htlc, swap)) = (recovery(form, redeems), swap_of(&terms));
        let mut scene = Self { recovery, chain: Chain::empty(&terms), htlc, swap };
        scene.stores(&htlc, &swap, FINALIZED - 1);
        scene
    }

    fn stores(&mut self, layout: &Program, swap: &HtlcAccount, expiry: u64) {
        let account = Account { lamports: RENT, owner: self.htlc.program, data: stored(layout, swap, expiry) };
        self.chain.accounts.insert(self.recovery.swap_account(), account);
    }

    fn judged(&self) -> Result<SettlementFacts, Refusal> {
        let network = if self.chain.genesis.starts_with('5') { "mainnet" } else { "testnet" };
        let query = SettlementQuery::new(&countersign_core::chains::Network::Solana(network.to_owned()), &self.recovery);
        drive_on::<Settlement>(&query, &self.chain).outcome.unwrap().into_output().0
    }

    /// The reason of the refusal.
    fn fails(&self) -> String {
        let refusal = self.judged().unwrap_err();
        assert_eq!(refusal.code(), Code::SimulationReverted);
        refusal.to_string()
    }
}

const BOTH: [bool; 2] = [true, false];

#[test]
fn the_rent_goes_to_the_sponsor_that_the_account_names() {
    for form in FORMS {
        for redeems in BOTH {
            let scene = Scene::new(form, redeems);
            let facts = scene.judged().unwrap();
            let names_sponsor = is_audited(&scene.htlc) || scene.htlc.token.is_some();
            assert_eq!(facts.sponsor, names_sponsor.then(|| Address::from(SPONSOR)), "{form}");
            assert_eq!(facts.new_token_account.is_some(), scene.htlc.token.is_some(), "{form}");
        }
    }
}

/// A redemption that fails has revealed the secret for nothing.
#[test]
fn a_swap_that_is_not_there_or_another_ones_is_neither_redeemed_nor_refunded() {
    for form in FORMS {
        for redeems in BOTH {
            let mut scene = Scene::new(form, redeems);
            let address = scene.recovery.swap_account();
            scene.chain.account_mut(address).owner = Address::from([0x44; 32]);
            assert!(scene.fails().contains("no open swap"), "{form}");
            scene.chain.accounts.remove(&address);
            assert!(scene.fails().contains("no open swap"), "{form}");
            for other in FORMS.iter().filter(|other| **other != form) {
                let mut scene = Scene::new(form, redeems);
                let swap = scene.swap;
                scene.stores(&swap_of(&of(other)).0, &swap, FINALIZED - 1);
                assert!(scene.fails().contains("another generation"), "{form} {other}");
            }
        }
    }
}

#[test]
fn the_swap_must_pay_the_account_of_the_record() {
    let other = Address::from([0x33; 32]);
    for form in FORMS {
        for redeems in BOTH {
            let mut scene = Scene::new(form, redeems);
            let (htlc, mut swap) = (scene.htlc, scene.swap);
            (if redeems { &mut swap.initiator } else { &mut swap.redeemer }).clone_from(&other);
            scene.stores(&htlc, &swap, FINALIZED - 1);
            assert!(scene.judged().is_ok(), "{form}: the party that is not paid");
            swap = scene.swap;
            (if redeems { &mut swap.redeemer } else { &mut swap.initiator }).clone_from(&other);
            scene.stores(&htlc, &swap, FINALIZED - 1);
            assert!(scene.fails().contains("pays another account"), "{form}");
        }
    }
}

/// A swap expires after its slot, and can be redeemed at any time.
#[test]
fn a_refund_waits_for_the_slot_after_the_expiry() {
    for form in FORMS {
        for (expiry, is_early) in [(FINALIZED - 1, false), (FINALIZED, true), (FINALIZED + 1, true)] {
            let mut refund = Scene::new(form, false);
            let (htlc, swap) = (refund.htlc, refund.swap);
            refund.stores(&htlc, &swap, expiry);
            assert_eq!(refund.judged().is_err(), is_early, "{form} {expiry}");
            assert!(!is_early || refund.fails().contains("timelock has not passed"), "{form} {expiry}");
            let mut redemption = Scene::new(form, true);
            redemption.stores(&htlc, &swap, expiry);
            assert!(redemption.judged().is_ok(), "{form} {expiry}");
        }
    }
}

/// The payer needs the rent of the account's real length: with less, the redemption shows the secret and fails.
#[test]
fn a_new_token_account_is_as_long_as_its_mint_requires() {
    for form in [FORMS[1], FORMS[3]] {
        for redeems in BOTH {
            let mut scene = Scene::new(form, redeems);
            assert_eq!(scene.judged().unwrap().new_token_account, Some(165), "{form}: without a mint");
            let mut data = vec![0; 166];
            (data[44], data[45], data[165]) = (6, 1, 1);
            // A fee on transfers, and a hook: as PYUSD has them.
            data.extend([&[1, 0, 108, 0][..], &[0; 108], &[14, 0, 64, 0], &[0; 64]].concat());
            scene.chain.accounts.insert(scene.htlc.token.unwrap().mint, Account { lamports: 1, owner: TOKEN_2022_PROGRAM, data });
            assert_eq!(scene.judged().unwrap().new_token_account, Some(187), "{form}");
        }
    }
}

#[test]
fn the_payment_goes_to_a_usable_token_account_of_the_payee() {
    let other = Address::from([0x33; 32]);
    for form in [FORMS[1], FORMS[3]] {
        for redeems in BOTH {
            let mut scene = Scene::new(form, redeems);
            let (mint, to, paid) = (scene.htlc.token.unwrap().mint, scene.recovery.to(), scene.recovery.token_account().unwrap());
            scene.chain.accounts.insert(paid, token_account(mint, to, 0));
            assert!(scene.judged().unwrap().new_token_account.is_none(), "{form}");
            scene.chain.accounts.insert(paid, system_account(1));
            assert!(scene.judged().unwrap().new_token_account.is_some(), "{form}: only lamports");
            let mut frozen = token_account(mint, to, 0);
            frozen.data[108] = 2;
            scene.chain.accounts.insert(paid, frozen);
            assert!(scene.fails().contains("frozen"), "{form}");
            for account in [token_account(other, to, 0), token_account(mint, other, 0), token_account(other, other, 0)] {
                scene.chain.accounts.insert(paid, account);
                assert!(scene.fails().contains("does not belong to the payee"), "{form}");
            }
        }
    }
}
