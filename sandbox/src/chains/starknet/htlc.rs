//! The HTLC with the interface, the ids, the messages, the storage and the events of November 2025.

use alloy_primitives::U256;
use sha2::{Digest as _, Sha256};
use starknet_crypto::{Felt, poseidon_hash_many};

use super::felts::{ACCOUNT_CLASS, after, halves, is_signed, message, selector, storage, words};
use super::machine::{Arguments, Failure, Frame, Machine, Why, World, panic, require};

/// The seven felts of an order.
struct Order {
    ended: u64,
    initiator: Felt,
    redeemer: Felt,
    initiated: u64,
    timelock: u128,
    amount: U256,
}

/// Returns the id of an order: it binds all terms, the chain and the contract.
pub(super) fn order_id(chain_id: Felt, hash: &[u8; 32], parties: [Felt; 2], timelock: u128, amount: U256, htlc: Felt) -> Felt {
    let mut felts = vec![chain_id];
    felts.extend(words(hash));
    felts.extend(parties);
    felts.push(Felt::from(timelock));
    felts.extend(halves(amount));
    felts.push(htlc);
    poseidon_hash_many(&felts)
}

/// Returns the hash that the initiator signs.
pub(super) fn initiate_message(world: &World, htlc: Felt, parties: [Felt; 2], timelock: u128, amount: U256, hash: &[u8; 32]) -> Felt {
    const U256_TYPE: &str = r#""u256"("low":"u128","high":"u128")"#;
    let name = format!(
        r#""Initiate"("redeemer":"ContractAddress","amount":"u256","timelock":"u128","secretHash":"u128*","verifyingContract":"ContractAddress"){U256_TYPE}"#
    );
    let [initiator, redeemer] = parties;
    let [low, high] = halves(amount);
    let amount = poseidon_hash_many(&[selector(U256_TYPE), low, high]);
    let hash = poseidon_hash_many(&words(hash));
    message(world.chain_id, initiator, &[selector(&name), redeemer, amount, Felt::from(timelock), hash, htlc])
}

impl Machine<'_> {
    fn order(&self, htlc: Felt, id: Felt) -> Order {
        let base = storage("orders", &[id]);
        let at = |place| self.read(htlc, after(base, place));
        let block = |place| u64::try_from(at(place)).unwrap_or_default();
        Order {
            ended: block(0),
            initiator: at(1),
            redeemer: at(2),
            initiated: block(3),
            timelock: u128::try_from(at(4)).unwrap_or_default(),
            amount: self.number(htlc, after(base, 5)),
        }
    }

    /// Calls the token with the HTLC as the caller.
    fn pay(&mut self, frame: &mut Frame, token: Felt, name: &str, parties: &[Felt], amount: U256) -> Result<(), Failure> {
        let calldata: Vec<_> = parties.iter().copied().chain(halves(amount)).collect();
        let call = self.call(frame.contract, token, selector(name), &calldata)?;
        frame.calls.push(call);
        Ok(())
    }

    pub(super) fn htlc(&mut self, token: Felt, frame: &mut Frame, name: &str, mut arguments: Arguments<'_>) -> Result<Vec<Felt>, Failure> {
        let here = frame.contract;
        match name {
            "token" => {
                arguments.end()?;
                return Ok(vec![token]);
            }
            "get_order" => {
                let base = storage("orders", &[arguments.felt()?]);
                arguments.end()?;
                return Ok((0..7).map(|place| self.read(here, after(base, place))).collect());
            }
            "redeem" => {
                let (id, secret) = (arguments.felt()?, arguments.array()?);
                arguments.end()?;
                self.redeem(token, frame, id, secret)?;
            }
            "refund" | "instant_refund" => {
                let id = arguments.felt()?;
                let signature = if name == "refund" { None } else { Some(arguments.array()?) };
                arguments.end()?;
                self.refund(token, frame, id, signature)?;
            }
            _ => {
                let Some(form) = name.strip_prefix("initiate") else { return Err(Why::NoFunction.into()) };
                self.initiate(token, frame, form, arguments)?;
            }
        }
        Ok(Vec::new())
    }

    fn initiate(&mut self, token: Felt, frame: &mut Frame, form: &str, mut arguments: Arguments<'_>) -> Result<(), Failure> {
        let (here, caller) = (frame.contract, frame.caller);
        let initiator = if form.is_empty() || form == "_with_destination_data" { caller } else { arguments.felt()? };
        let (redeemer, timelock, amount, hash) = (arguments.felt()?, arguments.u128()?, arguments.u256()?, arguments.hash()?);
        let rest = if form.is_empty() || form == "_on_behalf" { None } else { Some(arguments.array()?) };
        arguments.end()?;
        let is_gasless = form == "_with_signature";
        if is_gasless {
            let signed = initiate_message(self.world, here, [initiator, redeemer], timelock, amount, &hash);
            let exists = self.class_of(initiator) == ACCOUNT_CLASS;
            require(exists && is_signed(initiator, signed, rest.unwrap_or_default()), "HTLC: invalid initiator signature")?;
        }
        let payer = if is_gasless { initiator } else { caller };
        require(initiator != Felt::ZERO, "HTLC: zero address initiator")?;
        require(redeemer != Felt::ZERO, "HTLC: zero address redeemer")?;
        require(payer != redeemer || payer == initiator, "HTLC: sender == redeemer")?;
        require(initiator != redeemer, "HTLC: same initiator & redeemer")?;
        require(timelock > 0, "HTLC: zero timelock")?;
        require(!amount.is_zero(), "HTLC: zero amount")?;
        let id = order_id(self.world.chain_id, &hash, [initiator, redeemer], timelock, amount, here);
        require(self.order(here, id).redeemer == Felt::ZERO, "HTLC: duplicate order")?;
        let [low, high] = halves(amount);
        let felts = [Felt::ZERO, initiator, redeemer, Felt::from(self.block), Felt::from(timelock), low, high];
        let base = storage("orders", &[id]);
        for (place, felt) in (0..).zip(felts) {
            self.write(here, after(base, place), felt);
        }
        let mut data = words(&hash);
        data.extend([low, high]);
        let event = match rest.filter(|_| !is_gasless) {
            None => "Initiated",
            Some(more) => {
                data.push(Felt::from(more.len()));
                data.extend(more);
                "InitiatedWithDestinationData"
            }
        };
        self.emit(frame, vec![selector(event), id], data);
        self.pay(frame, token, "transfer_from", &[payer, here], amount)
    }

    fn open_order(&self, htlc: Felt, id: Felt) -> Result<Order, Why> {
        let order = self.order(htlc, id);
        require(order.redeemer != Felt::ZERO, "HTLC: order not initiated")?;
        require(order.ended == 0, "HTLC: order fulfilled")?;
        Ok(order)
    }

    fn redeem(&mut self, token: Felt, frame: &mut Frame, id: Felt, secret: &[Felt]) -> Result<(), Failure> {
        let here = frame.contract;
        require(secret.len() == 8, "HTLC: invalid length of secret")?;
        let order = self.open_order(here, id)?;
        let hash: [u8; 32] = Sha256::digest(Arguments(secret).hash()?).into();
        let Order { initiator, redeemer, timelock, amount, .. } = order;
        // The id depends on the secret hash, so that another secret leads to another id.
        let found = order_id(self.world.chain_id, &hash, [initiator, redeemer], timelock, amount, here);
        require(found == id, "HTLC: incorrect secret")?;
        self.write(here, storage("orders", &[id]), Felt::from(self.block));
        let mut data = words(&hash);
        data.push(Felt::from(8));
        data.extend(secret);
        self.emit(frame, vec![selector("Redeemed"), id], data);
        self.pay(frame, token, "transfer", &[redeemer], amount)
    }

    /// A refund after the timelock, or with the redeemer's consent: as the caller, or with a signature.
    fn refund(&mut self, token: Felt, frame: &mut Frame, id: Felt, signature: Option<&[Felt]>) -> Result<(), Failure> {
        let here = frame.contract;
        let order = self.open_order(here, id)?;
        match signature {
            None => {
                let end = u128::from(order.initiated).checked_add(order.timelock).ok_or_else(|| panic("u128_add Overflow"))?;
                require(end < u128::from(self.block), "HTLC: order not expired")?;
            }
            Some(signature) if frame.caller != order.redeemer => {
                let name = selector(r#""instantRefund"("orderID":"felt","verifyingContract":"ContractAddress")"#);
                let hash = message(self.world.chain_id, order.redeemer, &[name, id, here]);
                require(is_signed(order.redeemer, hash, signature), "HTLC: invalid redeemer signature")?;
            }
            Some(_) => {}
        }
        self.write(here, storage("orders", &[id]), Felt::from(self.block));
        self.emit(frame, vec![selector("Refunded"), id], Vec::new());
        self.pay(frame, token, "transfer", &[order.initiator], order.amount)
    }
}
