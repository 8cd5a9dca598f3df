//! The check of a deposit, in SUI and in another coin, before it is signed.

use countersign_core::reader::{Agree, Ask, Known};
use countersign_core::{Code, Policy, Refusal, Role};
use countersign_sui::balance::{ValidDuring, reservation};
use countersign_sui::reader::{Check, On, Preflight};
use countersign_sui::sui_sdk_types::{Address, Digest, ObjectReference};
use countersign_sui::{Sui, TxContext, UnsignedOrder, VerifiedOrder};
use countersign_testkit::chain::sui::{Executed, Ledger, SUI, digest_of};
use countersign_testkit::{asset_index, fixture, registry_with, verified, with_verified};
use serde_json::json;

use super::send::{nested, network};
use super::wallet::recovery_with;
use super::{Asked, Request, drive, method};

const BUDGET: u64 = 7_000_000;
/// What the simulation takes for gas, after the rebate.
const NET: u64 = 4_000_000;

/// A change of a balance: the account, the coin and the amount.
type Change = (String, String, i128);

/// A deposit, and a node on which the simulation does what was verified.
#[derive(Clone)]
struct Deposit {
    check: Check,
    /// The transaction that is simulated.
    bytes: Vec<u8>,
    payer: String,
    coin: String,
    amount: u64,
    ledger: Ledger,
}

impl Deposit {
    fn new(order: &VerifiedOrder) -> Self {
        let gas = ObjectReference::new(Address::new([0x21; 32]), 7, Digest::new([2; 32]));
        let unsigned: UnsignedOrder = order.prepare(TxContext::new(1_000, BUDGET, vec![gas])).unwrap();
        let (payer, coin) = (order.deposit().sender.to_string(), order.deposit().terms.coin_type.to_string());
        let bytes = unsigned.payloads().bytes.clone();
        let (check, amount) = (Check::new(&unsigned), order.deposit().terms.amount);
        Self { check, bytes, payer, coin, amount, ledger: Ledger::funded() }.with_balances(10_000_000_000, 10_000_000_000).changing(&[])
    }

    fn sui() -> Self {
        Self::new(&verified::<Sui>(&fixture::<Sui>("sui-native")))
    }

    /// A deposit of a coin other than SUI, which its owner sends and pays for.
    fn token() -> Self {
        let outside: serde_json::Value = serde_json::from_str(include_str!("../outside.json")).unwrap();
        let tokens = &outside["tokens"];
        let pointer = format!("/assets/{}/token", asset_index("sui_testnet:sui"));
        let registry = registry_with(&[(&pointer, json!({ "address": tokens["coin_type"] }))]);
        let line = tokens["cases"][0]["line"].to_string();
        let deposit = Self::new(&with_verified::<Sui, _>(line.as_bytes(), &registry, &Policy::default(), |order, _| Ok(order)).unwrap());
        assert_eq!(deposit.coin, tokens["coin_type"].as_str().unwrap());
        deposit
    }

    fn with_balances(mut self, sui: u64, coin: u64) -> Self {
        self.ledger.balances = [(self.coin.clone(), coin), (SUI.to_owned(), sui)].into();
        self
    }

    /// The changes of the deposit and its gas, and these besides.
    fn changing(mut self, others: &[Change]) -> Self {
        let own =
            [(self.payer.clone(), self.coin.clone(), -i128::from(self.amount)), (self.payer.clone(), SUI.to_owned(), -i128::from(NET))];
        let changes = own.iter().chain(others).map(|(owner, coin, amount)| (owner.clone(), coin.clone(), amount.to_string()));
        self.ledger.simulated = Ok(Executed { changes: changes.collect(), checkpoint: None, ..Executed::new(digest_of(7)) });
        self
    }

    fn judged(&self) -> (Result<Preflight, Refusal>, Asked) {
        let on = On::new(network(), self.check.clone());
        let (judged, asked) = drive::<Ask<_>>(&on, &Known::default(), |_, request| self.ledger.answer(request));
        (judged.unwrap().into_output().0, asked)
    }

    fn passes(&self) -> Preflight {
        self.judged().0.unwrap()
    }

    fn refused(&self) -> (Code, String) {
        let refusal = self.judged().0.unwrap_err();
        (refusal.code(), refusal.location().to_owned())
    }
}

#[test]
fn a_deposit_of_sui_is_paid_from_the_balance_that_pays_for_gas() {
    let deposit = Deposit::sui();
    let (judged, asked) = deposit.judged();
    let Preflight { balance, cost, gas_used, .. } = judged.unwrap();
    assert_eq!((balance, cost, gas_used), (10_000_000_000, deposit.amount + BUDGET, Some(6_000_000)));
    assert_eq!(asked, [["GetServiceInfo", "GetBalance", "SimulateTransaction"]]);
    let cost = deposit.amount + BUDGET;
    assert_eq!(deposit.clone().with_balances(cost, cost).passes().balance, cost);
    assert_eq!(deposit.with_balances(cost - 1, cost - 1).refused(), (Code::InsufficientFunds, "/balance".to_owned()));
}

#[test]
fn what_coins_pay_must_be_in_coins_and_what_the_balance_pays_in_the_balance() {
    let held = |deposit: &Deposit, coins: u64, funds: u64| {
        let mut deposit = deposit.clone();
        deposit.ledger.balances = [(SUI.to_owned(), coins)].into();
        deposit.ledger.in_balance = [(SUI.to_owned(), funds)].into();
        deposit.judged().0.map(|preflight| (preflight.balance, preflight.holdings.coins, preflight.holdings.address_balance))
    };
    let in_coins = Deposit::sui();
    let cost = in_coins.amount + BUDGET;
    assert_eq!(held(&in_coins, cost, 7).unwrap(), (cost + 7, cost, 7));
    for coins in [0, cost - 1] {
        let refusal = held(&in_coins, coins, 10_000_000_000).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::InsufficientFunds, "/balance"));
        assert!(refusal.to_string().contains(&format!("coin objects hold {coins}, and the address balance 10000000000")), "{refusal}");
    }
    let order = verified::<Sui>(&fixture::<Sui>("sui-native"));
    let genesis = Digest::from_base58("69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD").unwrap();
    let gas = TxContext::from_balance(1_000, BUDGET, ValidDuring::from_epoch(900, genesis, 1));
    let in_balance = Deposit { check: Check::new(&order.prepare(gas).unwrap()), ..in_coins };
    assert_eq!(held(&in_balance, 0, cost).unwrap(), (cost, 0, cost));
    let refusal = held(&in_balance, 1, cost - 1).unwrap_err();
    assert!(refusal.to_string().contains(&format!("0 in coin objects and {cost} in the address balance")), "{refusal}");
    assert_eq!(held(&in_balance, 0, cost - 1).unwrap_err().code(), Code::InsufficientFunds);
}

/// The network sets a reservation aside as a whole. It would refuse a redemption with a larger one after it has seen the secret.
#[test]
fn a_reservation_is_in_the_balance_as_a_whole_in_every_role() {
    const RESERVED: u64 = 50_000_000_000;
    let genesis = Digest::from_base58("69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD").unwrap();
    let reserving = |sender| {
        let gas = vec![reservation(sender, RESERVED, 900, genesis).unwrap()];
        TxContext::new(1_000, BUDGET, gas).with_valid_during(ValidDuring::from_epoch(900, genesis, 1))
    };
    let order = verified::<Sui>(&fixture::<Sui>("sui-native"));
    let (owner, sender) = (order.deposit().sender, Address::new([0xa1; 32]));
    for (role, payer, unsigned, amount) in [
        (Role::Initiate, owner, order.prepare(reserving(owner)).unwrap(), order.deposit().terms.amount),
        (Role::Redeem, sender, recovery_with(Role::Redeem, reserving(sender)), 0),
        (Role::Refund, sender, recovery_with(Role::Refund, reserving(sender)), 0),
    ] {
        let on = On::new(network(), Check::new(&unsigned));
        let judged = |funds: u64| {
            let changes = vec![(payer.to_string(), SUI.to_owned(), (-i128::from(NET + amount)).to_string())];
            let simulated = Ok(Executed { changes, checkpoint: None, ..Executed::new(digest_of(7)) });
            let (balances, in_balance) = ([(SUI.to_owned(), 0)].into(), [(SUI.to_owned(), funds)].into());
            let ledger = Ledger { simulated, balances, in_balance, ..Ledger::funded() };
            drive::<Ask<_>>(&on, &Known::default(), |_, request| ledger.answer(request)).0.unwrap().into_output().0
        };
        assert_eq!(judged(RESERVED).unwrap().cost, BUDGET + amount, "{role}");
        for funds in [5_000_000_000, RESERVED - 1] {
            let refusal = judged(funds).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::InsufficientFunds, "/balance"), "{role}");
        }
    }
}

#[test]
fn a_deposit_of_another_coin_needs_the_coin_and_sui_for_gas() {
    let deposit = Deposit::token();
    let (judged, asked) = deposit.judged();
    let Preflight { cost, gas_used, .. } = judged.unwrap();
    assert_eq!((cost, gas_used), (BUDGET, Some(6_000_000)));
    assert_eq!(asked, [["GetServiceInfo", "GetBalance", "GetBalance", "SimulateTransaction"]]);
    assert_eq!(deposit.clone().with_balances(BUDGET, deposit.amount).passes().balance, BUDGET);
    let poor = deposit.clone().with_balances(BUDGET - 1, deposit.amount);
    assert_eq!(poor.refused(), (Code::InsufficientFunds, "/balance".to_owned()));
    let short = deposit.clone().with_balances(BUDGET, deposit.amount - 1);
    assert_eq!(short.refused(), (Code::InsufficientFunds, "/token".to_owned()));
}

/// No more leaves any account than what was verified, and nothing arrives that the order does not explain.
#[test]
fn a_deposit_changes_the_balances_by_the_amount_and_the_gas_and_by_nothing_else() {
    for deposit in [Deposit::sui(), Deposit::token()] {
        let (payer, other) = (deposit.payer.clone(), Address::new([7; 32]).to_string());
        let zero = deposit.clone().changing(&[(other.clone(), SUI.to_owned(), 0)]);
        assert_eq!(zero.passes().gas_used, Some(6_000_000));
        for (owner, coin) in [(&payer, SUI), (&payer, deposit.coin.as_str()), (&payer, "0x7::a::B"), (&other, SUI), (&other, &deposit.coin)]
        {
            for amount in [-1, 1] {
                let more = deposit.clone().changing(&[(owner.clone(), coin.to_owned(), amount)]);
                assert_eq!(more.refused(), (Code::SimulationDiffers, "/balance_changes".to_owned()), "{owner} {coin} {amount}");
            }
        }
    }
}

/// Endpoints agree on the gas that the transaction costs.
#[test]
fn a_simulation_with_another_gas_cost_is_another_result() {
    let deposit = Deposit::sui();
    let mut wasteful = deposit.clone();
    wasteful.ledger.simulated.as_mut().unwrap().gas = [2_000_000, 5_000_000, 3_000_000];
    assert_ne!(deposit.passes().key(), wasteful.passes().key());
    let richer = deposit.clone().with_balances(20_000_000_000, 20_000_000_000);
    assert_eq!(deposit.passes().key(), richer.passes().key());
}

#[test]
fn what_is_simulated_is_what_is_signed() {
    for deposit in [Deposit::sui(), Deposit::token()] {
        let mut simulated = Vec::new();
        let on = On::new(network(), deposit.check.clone());
        let (judged, _) = drive::<Ask<_>>(&on, &Known::default(), |_, request| {
            if let (Request::Post { body, .. }, "SimulateTransaction") = (request, method(request).as_str()) {
                simulated.push(nested(&body[5..], &[1, 1, 2]));
            }
            deposit.ledger.answer(request)
        });
        assert!(judged.unwrap().into_output().0.is_ok());
        assert_eq!(simulated, [deposit.bytes]);
    }
}

#[test]
fn a_check_is_shown_without_its_transaction() {
    let deposit = Deposit::sui();
    let shown = format!("{:?}", deposit.check);
    let bytes = format!("{:?}", deposit.bytes);
    assert!(shown.contains("Simulation(initiate)") && !shown.contains(&bytes[1..40]), "{shown}");
}
