//! Hash time-locked contracts with the interfaces of three generations, and the hashes, storage and events that
//! `docs/spec/starknet.md` describes for them. They are for tests, and nobody has audited them.
//!
//! - `November2025` has the interface of the audited source.
//! - `February2025` has no `get_order`: its orders are read from storage.
//! - `Client313` has the interface that the client names. Its id formula is not known, so this one is made up.

use core::poseidon::poseidon_hash_span;
use core::sha256::compute_sha256_u32_array;
use starknet::{ContractAddress, get_block_number, get_contract_address, get_tx_info};

#[starknet::interface]
pub trait IToken<T> {
    fn transfer(ref self: T, recipient: ContractAddress, amount: u256) -> bool;
    fn transfer_from(ref self: T, sender: ContractAddress, recipient: ContractAddress, amount: u256) -> bool;
}

#[starknet::interface]
pub trait IAccount<T> {
    fn is_valid_signature(self: @T, hash: felt252, signature: Array<felt252>) -> felt252;
}

#[derive(Copy, Drop, Serde, starknet::Store)]
pub struct Order {
    /// The block in which the order ended, 0 while it is open. `February2025` stores 1 instead of the block.
    pub fulfilled_at: u128,
    pub initiator: ContractAddress,
    pub redeemer: ContractAddress,
    pub initiated_at: u128,
    pub timelock: u128,
    pub amount: u256,
}

fn is_zero(address: ContractAddress) -> bool {
    let address: felt252 = address.into();
    address == 0
}

pub fn block() -> u128 {
    get_block_number().into()
}

/// Returns a new order after checking its terms.
pub fn open(initiator: ContractAddress, redeemer: ContractAddress, timelock: u128, amount: u256) -> Order {
    assert!(!is_zero(redeemer), "HTLC: zero address redeemer");
    assert!(initiator != redeemer, "HTLC: same initiator & redeemer");
    assert!(timelock > 0, "HTLC: zero timelock");
    assert!(amount > 0, "HTLC: zero amount");
    Order { fulfilled_at: 0, initiator, redeemer, initiated_at: block(), timelock, amount }
}

pub fn assert_new(order: Order) {
    assert!(is_zero(order.redeemer), "HTLC: duplicate order");
}

pub fn assert_open(order: Order) {
    assert!(!is_zero(order.redeemer), "HTLC: order not initiated");
    assert!(order.fulfilled_at == 0, "HTLC: order fulfilled");
}

pub fn assert_expired(order: Order) {
    assert!(order.initiated_at + order.timelock < block(), "HTLC: order not expired");
}

pub fn take(token: ContractAddress, from: ContractAddress, amount: u256) {
    let paid = ITokenDispatcher { contract_address: token }.transfer_from(from, get_contract_address(), amount);
    assert!(paid, "ERC20: Transfer failed");
}

pub fn pay(token: ContractAddress, to: ContractAddress, amount: u256) {
    assert!(ITokenDispatcher { contract_address: token }.transfer(to, amount), "ERC20: Transfer failed");
}

/// SHA-256 of words, the most significant first.
pub fn sha256(secret: Span<u32>) -> [u32; 8] {
    let mut words: Array<u32> = array![];
    for word in secret {
        words.append(*word);
    }
    compute_sha256_u32_array(words, 0, 0)
}

pub fn eight(words: [u32; 8]) -> Array<felt252> {
    let [a, b, c, d, e, f, g, h] = words;
    array![a.into(), b.into(), c.into(), d.into(), e.into(), f.into(), g.into(), h.into()]
}

pub fn two(words: [u128; 2]) -> Array<felt252> {
    let [high, low] = words;
    array![high.into(), low.into()]
}

fn joined(a: u32, b: u32, c: u32, d: u32) -> u128 {
    let (a, b, c, d): (u128, u128, u128, u128) = (a.into(), b.into(), c.into(), d.into());
    ((a * 0x100000000 + b) * 0x100000000 + c) * 0x100000000 + d
}

pub fn halved(words: [u32; 8]) -> [u128; 2] {
    let [a, b, c, d, e, f, g, h] = words;
    [joined(a, b, c, d), joined(e, f, g, h)]
}

/// The id of an order that depends on all its terms and on the contract.
pub fn id_of_terms(hash: Span<felt252>, order: Order) -> felt252 {
    let mut felts = array![get_tx_info().unbox().chain_id];
    felts.append_span(hash);
    felts.append(order.initiator.into());
    felts.append(order.redeemer.into());
    felts.append(order.timelock.into());
    felts.append(order.amount.low.into());
    felts.append(order.amount.high.into());
    felts.append(get_contract_address().into());
    poseidon_hash_span(felts.span())
}

/// The id of an order that depends only on its secret hash and its initiator.
pub fn id_of_initiator(hash: Span<felt252>, initiator: ContractAddress) -> felt252 {
    let mut felts = array![get_tx_info().unbox().chain_id];
    felts.append_span(hash);
    felts.append(initiator.into());
    poseidon_hash_span(felts.span())
}

/// The hash of a SNIP-12 message of revision 1.
pub fn message(version: felt252, signer: ContractAddress, members: Span<felt252>) -> felt252 {
    let domain = poseidon_hash_span(
        array![
            selector!(
                "\"StarknetDomain\"(\"name\":\"shortstring\",\"version\":\"shortstring\",\"chainId\":\"shortstring\",\"revision\":\"shortstring\")",
            ),
            'HTLC', version, get_tx_info().unbox().chain_id, 1,
        ]
            .span(),
    );
    poseidon_hash_span(array!['StarkNet Message', domain, signer.into(), poseidon_hash_span(members)].span())
}

/// The members of the message `Initiate` after its type.
pub fn terms(redeemer: ContractAddress, timelock: u128, amount: u256, hash: Span<felt252>) -> Array<felt252> {
    let amount = poseidon_hash_span(
        array![selector!("\"u256\"(\"low\":\"u128\",\"high\":\"u128\")"), amount.low.into(), amount.high.into()].span(),
    );
    array![redeemer.into(), amount, timelock.into(), poseidon_hash_span(hash)]
}

/// The message of `Initiate` that names the contract.
pub fn initiate_message(version: felt252, signer: ContractAddress, terms: Span<felt252>) -> felt252 {
    let mut members = array![
        selector!(
            "\"Initiate\"(\"redeemer\":\"ContractAddress\",\"amount\":\"u256\",\"timelock\":\"u128\",\"secretHash\":\"u128*\",\"verifyingContract\":\"ContractAddress\")\"u256\"(\"low\":\"u128\",\"high\":\"u128\")",
        ),
    ];
    members.append_span(terms);
    members.append(get_contract_address().into());
    message(version, signer, members.span())
}

/// The message of an instant refund that names the contract.
pub fn refund_message(version: felt252, signer: ContractAddress, order_id: felt252) -> felt252 {
    let name = selector!("\"instantRefund\"(\"orderID\":\"felt\",\"verifyingContract\":\"ContractAddress\")");
    message(version, signer, array![name, order_id, get_contract_address().into()].span())
}

pub fn is_signed(signer: ContractAddress, hash: felt252, signature: Array<felt252>) -> bool {
    IAccountDispatcher { contract_address: signer }.is_valid_signature(hash, signature) == 'VALID'
}

#[starknet::contract]
pub mod November2025 {
    use starknet::storage::{Map, StorageMapReadAccess, StorageMapWriteAccess, StoragePointerReadAccess, StoragePointerWriteAccess};
    use starknet::{ContractAddress, get_caller_address};
    use super::Order;

    const VERSION: felt252 = '1';

    #[starknet::interface]
    pub trait IHtlc<T> {
        fn token(self: @T) -> ContractAddress;
        fn get_order(self: @T, order_id: felt252) -> Order;
        fn initiate(ref self: T, redeemer: ContractAddress, timelock: u128, amount: u256, secret_hash: [u32; 8]);
        fn initiate_with_destination_data(
            ref self: T, redeemer: ContractAddress, timelock: u128, amount: u256, secret_hash: [u32; 8], destination_data: Array<felt252>,
        );
        fn initiate_on_behalf(
            ref self: T, initiator: ContractAddress, redeemer: ContractAddress, timelock: u128, amount: u256, secret_hash: [u32; 8],
        );
        fn initiate_on_behalf_with_destination_data(
            ref self: T,
            initiator: ContractAddress,
            redeemer: ContractAddress,
            timelock: u128,
            amount: u256,
            secret_hash: [u32; 8],
            destination_data: Array<felt252>,
        );
        fn initiate_with_signature(
            ref self: T,
            initiator: ContractAddress,
            redeemer: ContractAddress,
            timelock: u128,
            amount: u256,
            secret_hash: [u32; 8],
            signature: Array<felt252>,
        );
        fn redeem(ref self: T, order_id: felt252, secret: Array<u32>);
        fn refund(ref self: T, order_id: felt252);
        fn instant_refund(ref self: T, order_id: felt252, signature: Array<felt252>);
    }

    #[storage]
    struct Storage {
        token: ContractAddress,
        orders: Map<felt252, Order>,
    }

    #[event]
    #[derive(Drop, starknet::Event)]
    enum Event {
        Initiated: Initiated,
        InitiatedWithDestinationData: InitiatedWithDestinationData,
        Redeemed: Redeemed,
        Refunded: Refunded,
    }

    #[derive(Drop, starknet::Event)]
    struct Initiated {
        #[key]
        order_id: felt252,
        secret_hash: [u32; 8],
        amount: u256,
    }

    #[derive(Drop, starknet::Event)]
    struct InitiatedWithDestinationData {
        #[key]
        order_id: felt252,
        secret_hash: [u32; 8],
        amount: u256,
        destination_data: Array<felt252>,
    }

    #[derive(Drop, starknet::Event)]
    struct Redeemed {
        #[key]
        order_id: felt252,
        secret_hash: [u32; 8],
        secret: Array<u32>,
    }

    #[derive(Drop, starknet::Event)]
    struct Refunded {
        #[key]
        order_id: felt252,
    }

    #[constructor]
    fn constructor(ref self: ContractState, token: ContractAddress) {
        self.token.write(token);
    }

    #[abi(embed_v0)]
    impl Htlc of IHtlc<ContractState> {
        fn token(self: @ContractState) -> ContractAddress {
            self.token.read()
        }

        fn get_order(self: @ContractState, order_id: felt252) -> Order {
            self.orders.read(order_id)
        }

        fn initiate(ref self: ContractState, redeemer: ContractAddress, timelock: u128, amount: u256, secret_hash: [u32; 8]) {
            let sender = get_caller_address();
            self.open(sender, super::open(sender, redeemer, timelock, amount), secret_hash, None);
        }

        fn initiate_with_destination_data(
            ref self: ContractState,
            redeemer: ContractAddress,
            timelock: u128,
            amount: u256,
            secret_hash: [u32; 8],
            destination_data: Array<felt252>,
        ) {
            let sender = get_caller_address();
            self.open(sender, super::open(sender, redeemer, timelock, amount), secret_hash, Some(destination_data));
        }

        fn initiate_on_behalf(
            ref self: ContractState,
            initiator: ContractAddress,
            redeemer: ContractAddress,
            timelock: u128,
            amount: u256,
            secret_hash: [u32; 8],
        ) {
            self.open(get_caller_address(), super::open(initiator, redeemer, timelock, amount), secret_hash, None);
        }

        fn initiate_on_behalf_with_destination_data(
            ref self: ContractState,
            initiator: ContractAddress,
            redeemer: ContractAddress,
            timelock: u128,
            amount: u256,
            secret_hash: [u32; 8],
            destination_data: Array<felt252>,
        ) {
            let order = super::open(initiator, redeemer, timelock, amount);
            self.open(get_caller_address(), order, secret_hash, Some(destination_data));
        }

        fn initiate_with_signature(
            ref self: ContractState,
            initiator: ContractAddress,
            redeemer: ContractAddress,
            timelock: u128,
            amount: u256,
            secret_hash: [u32; 8],
            signature: Array<felt252>,
        ) {
            let terms = super::terms(redeemer, timelock, amount, super::eight(secret_hash).span());
            let hash = super::initiate_message(VERSION, initiator, terms.span());
            assert!(super::is_signed(initiator, hash, signature), "HTLC: invalid initiator signature");
            self.open(initiator, super::open(initiator, redeemer, timelock, amount), secret_hash, None);
        }

        fn redeem(ref self: ContractState, order_id: felt252, secret: Array<u32>) {
            assert!(secret.len() == 8, "HTLC: invalid length of secret");
            let order = self.orders.read(order_id);
            super::assert_open(order);
            let secret_hash = super::sha256(secret.span());
            // The id depends on the secret hash, so another secret leads to another id.
            assert!(super::id_of_terms(super::eight(secret_hash).span(), order) == order_id, "HTLC: incorrect secret");
            self.end(order_id, order);
            self.emit(Redeemed { order_id, secret_hash, secret });
            super::pay(self.token.read(), order.redeemer, order.amount);
        }

        fn refund(ref self: ContractState, order_id: felt252) {
            let order = self.orders.read(order_id);
            super::assert_open(order);
            super::assert_expired(order);
            self.give_back(order_id, order);
        }

        fn instant_refund(ref self: ContractState, order_id: felt252, signature: Array<felt252>) {
            let order = self.orders.read(order_id);
            super::assert_open(order);
            if get_caller_address() != order.redeemer {
                let hash = super::refund_message(VERSION, order.redeemer, order_id);
                assert!(super::is_signed(order.redeemer, hash, signature), "HTLC: invalid redeemer signature");
            }
            self.give_back(order_id, order);
        }
    }

    #[generate_trait]
    impl Internal of InternalTrait {
        fn open(ref self: ContractState, payer: ContractAddress, order: Order, secret_hash: [u32; 8], data: Option<Array<felt252>>) {
            let order_id = super::id_of_terms(super::eight(secret_hash).span(), order);
            super::assert_new(self.orders.read(order_id));
            self.orders.write(order_id, order);
            let amount = order.amount;
            match data {
                None => self.emit(Initiated { order_id, secret_hash, amount }),
                Some(destination_data) => self
                    .emit(InitiatedWithDestinationData { order_id, secret_hash, amount, destination_data }),
            }
            super::take(self.token.read(), payer, amount);
        }

        fn end(ref self: ContractState, order_id: felt252, order: Order) {
            self.orders.write(order_id, Order { fulfilled_at: super::block(), ..order });
        }

        fn give_back(ref self: ContractState, order_id: felt252, order: Order) {
            self.end(order_id, order);
            self.emit(Refunded { order_id });
            super::pay(self.token.read(), order.initiator, order.amount);
        }
    }
}

#[starknet::contract]
pub mod February2025 {
    use starknet::storage::{Map, StorageMapReadAccess, StorageMapWriteAccess, StoragePointerReadAccess, StoragePointerWriteAccess};
    use starknet::{ContractAddress, get_caller_address};
    use super::Order;

    #[storage]
    struct Storage {
        token: ContractAddress,
        orders: Map<felt252, Order>,
    }

    #[event]
    #[derive(Drop, starknet::Event)]
    enum Event {
        Initiated: Initiated,
        Redeemed: Redeemed,
        Refunded: Refunded,
    }

    #[derive(Drop, starknet::Event)]
    struct Initiated {
        #[key]
        order_id: felt252,
        secret_hash: [u32; 8],
        amount: u256,
    }

    #[derive(Drop, starknet::Event)]
    struct Redeemed {
        #[key]
        order_id: felt252,
        secret_hash: [u32; 8],
        secret: Array<u32>,
    }

    #[derive(Drop, starknet::Event)]
    struct Refunded {
        #[key]
        order_id: felt252,
    }

    #[constructor]
    fn constructor(ref self: ContractState, token: ContractAddress) {
        self.token.write(token);
    }

    // Functions without an interface, which the ABI lists on their own.
    #[external(v0)]
    fn token(self: @ContractState) -> ContractAddress {
        self.token.read()
    }

    #[external(v0)]
    fn initiate(ref self: ContractState, redeemer: ContractAddress, timelock: u128, amount: u256, secret_hash: [u32; 8]) {
        let sender = get_caller_address();
        open(ref self, sender, super::open(sender, redeemer, timelock, amount), secret_hash);
    }

    #[external(v0)]
    fn initiate_on_behalf(
        ref self: ContractState,
        initiator: ContractAddress,
        redeemer: ContractAddress,
        timelock: u128,
        amount: u256,
        secret_hash: [u32; 8],
    ) {
        open(ref self, get_caller_address(), super::open(initiator, redeemer, timelock, amount), secret_hash);
    }

    #[external(v0)]
    fn initiate_with_signature(
        ref self: ContractState,
        initiator: ContractAddress,
        redeemer: ContractAddress,
        timelock: u128,
        amount: u256,
        secret_hash: [u32; 8],
        signature: Array<felt252>,
    ) {
        let mut members = array![
            selector!(
                "\"Initiate\"(\"redeemer\":\"ContractAddress\",\"amount\":\"u256\",\"timelock\":\"u128\",\"secretHash\":\"u128*\")\"u256\"(\"low\":\"u128\",\"high\":\"u128\")",
            ),
        ];
        members.append_span(super::terms(redeemer, timelock, amount, super::eight(secret_hash).span()).span());
        let hash = super::message('1', initiator, members.span());
        assert!(super::is_signed(initiator, hash, signature), "HTLC: invalid initiator signature");
        open(ref self, initiator, super::open(initiator, redeemer, timelock, amount), secret_hash);
    }

    #[external(v0)]
    fn redeem(ref self: ContractState, order_id: felt252, secret: Array<u32>) {
        let order = self.orders.read(order_id);
        super::assert_open(order);
        let secret_hash = super::sha256(secret.span());
        let id = super::id_of_initiator(super::eight(secret_hash).span(), order.initiator);
        assert!(id == order_id, "HTLC: incorrect secret");
        self.orders.write(order_id, Order { fulfilled_at: 1, ..order });
        self.emit(Redeemed { order_id, secret_hash, secret });
        super::pay(self.token.read(), order.redeemer, order.amount);
    }

    #[external(v0)]
    fn refund(ref self: ContractState, order_id: felt252) {
        let order = self.orders.read(order_id);
        super::assert_open(order);
        super::assert_expired(order);
        give_back(ref self, order_id, order);
    }

    #[external(v0)]
    fn instant_refund(ref self: ContractState, order_id: felt252, signature: Array<felt252>) {
        let order = self.orders.read(order_id);
        super::assert_open(order);
        let members = array![selector!("\"instantRefund\"(\"orderID\":\"felt\")"), order_id];
        let hash = super::message('1', order.redeemer, members.span());
        assert!(super::is_signed(order.redeemer, hash, signature), "HTLC: invalid redeemer signature");
        give_back(ref self, order_id, order);
    }

    fn open(ref self: ContractState, payer: ContractAddress, order: Order, secret_hash: [u32; 8]) {
        let order_id = super::id_of_initiator(super::eight(secret_hash).span(), order.initiator);
        super::assert_new(self.orders.read(order_id));
        self.orders.write(order_id, order);
        self.emit(Initiated { order_id, secret_hash, amount: order.amount });
        super::take(self.token.read(), payer, order.amount);
    }

    fn give_back(ref self: ContractState, order_id: felt252, order: Order) {
        self.orders.write(order_id, Order { fulfilled_at: 1, ..order });
        self.emit(Refunded { order_id });
        super::pay(self.token.read(), order.initiator, order.amount);
    }
}

#[starknet::contract]
pub mod Client313 {
    use starknet::storage::{Map, StorageMapReadAccess, StorageMapWriteAccess, StoragePointerReadAccess, StoragePointerWriteAccess};
    use starknet::{ContractAddress, get_caller_address};
    use super::Order;

    const VERSION: felt252 = '2';

    #[storage]
    struct Storage {
        token: ContractAddress,
        orders: Map<felt252, Order>,
    }

    #[event]
    #[derive(Drop, starknet::Event)]
    enum Event {
        Initiated: Initiated,
        InitiatedWithDestinationData: InitiatedWithDestinationData,
        Redeemed: Redeemed,
        Refunded: Refunded,
    }

    #[derive(Drop, starknet::Event)]
    struct Initiated {
        #[key]
        order_id: felt252,
        secret_hash: [u128; 2],
        amount: u256,
    }

    #[derive(Drop, starknet::Event)]
    struct InitiatedWithDestinationData {
        #[key]
        order_id: felt252,
        secret_hash: [u128; 2],
        amount: u256,
        destination_data: Array<felt252>,
    }

    #[derive(Drop, starknet::Event)]
    struct Redeemed {
        #[key]
        order_id: felt252,
        secret_hash: [u128; 2],
        secret: [u32; 8],
    }

    #[derive(Drop, starknet::Event)]
    struct Refunded {
        #[key]
        order_id: felt252,
    }

    #[constructor]
    fn constructor(ref self: ContractState, token: ContractAddress) {
        self.token.write(token);
    }

    #[external(v0)]
    fn token(self: @ContractState) -> ContractAddress {
        self.token.read()
    }

    #[external(v0)]
    fn get_order(self: @ContractState, order_id: felt252) -> Order {
        self.orders.read(order_id)
    }

    #[external(v0)]
    fn initiate(ref self: ContractState, redeemer: ContractAddress, timelock: u128, amount: u256, secret_hash: [u128; 2]) {
        let sender = get_caller_address();
        open(ref self, sender, super::open(sender, redeemer, timelock, amount), secret_hash, None);
    }

    #[external(v0)]
    fn initiate_with_destination_data(
        ref self: ContractState,
        redeemer: ContractAddress,
        timelock: u128,
        amount: u256,
        secret_hash: [u128; 2],
        destination_data: Array<felt252>,
    ) {
        let sender = get_caller_address();
        open(ref self, sender, super::open(sender, redeemer, timelock, amount), secret_hash, Some(destination_data));
    }

    #[external(v0)]
    fn initiate_on_behalf(
        ref self: ContractState,
        initiator: ContractAddress,
        redeemer: ContractAddress,
        timelock: u128,
        amount: u256,
        secret_hash: [u128; 2],
    ) {
        open(ref self, get_caller_address(), super::open(initiator, redeemer, timelock, amount), secret_hash, None);
    }

    #[external(v0)]
    fn initiate_on_behalf_with_destination_data(
        ref self: ContractState,
        initiator: ContractAddress,
        redeemer: ContractAddress,
        timelock: u128,
        amount: u256,
        secret_hash: [u128; 2],
        destination_data: Array<felt252>,
    ) {
        let order = super::open(initiator, redeemer, timelock, amount);
        open(ref self, get_caller_address(), order, secret_hash, Some(destination_data));
    }

    #[external(v0)]
    fn initiate_with_signature(
        ref self: ContractState,
        initiator: ContractAddress,
        redeemer: ContractAddress,
        timelock: u128,
        amount: u256,
        secret_hash: [u128; 2],
        signature: Array<felt252>,
    ) {
        let terms = super::terms(redeemer, timelock, amount, super::two(secret_hash).span());
        let hash = super::initiate_message(VERSION, initiator, terms.span());
        assert!(super::is_signed(initiator, hash, signature), "HTLC: invalid initiator signature");
        open(ref self, initiator, super::open(initiator, redeemer, timelock, amount), secret_hash, None);
    }

    #[external(v0)]
    fn redeem(ref self: ContractState, order_id: felt252, secret: [u32; 8]) {
        let order = self.orders.read(order_id);
        super::assert_open(order);
        let secret_hash = super::halved(super::sha256(secret.span()));
        assert!(super::id_of_terms(super::two(secret_hash).span(), order) == order_id, "HTLC: incorrect secret");
        end(ref self, order_id, order);
        self.emit(Redeemed { order_id, secret_hash, secret });
        super::pay(self.token.read(), order.redeemer, order.amount);
    }

    #[external(v0)]
    fn refund(ref self: ContractState, order_id: felt252) {
        let order = self.orders.read(order_id);
        super::assert_open(order);
        super::assert_expired(order);
        give_back(ref self, order_id, order);
    }

    #[external(v0)]
    fn instant_refund(ref self: ContractState, order_id: felt252, signature: Array<felt252>) {
        let order = self.orders.read(order_id);
        super::assert_open(order);
        if get_caller_address() != order.redeemer {
            let hash = super::refund_message(VERSION, order.redeemer, order_id);
            assert!(super::is_signed(order.redeemer, hash, signature), "HTLC: invalid redeemer signature");
        }
        give_back(ref self, order_id, order);
    }

    fn open(ref self: ContractState, payer: ContractAddress, order: Order, secret_hash: [u128; 2], data: Option<Array<felt252>>) {
        let order_id = super::id_of_terms(super::two(secret_hash).span(), order);
        super::assert_new(self.orders.read(order_id));
        self.orders.write(order_id, order);
        let amount = order.amount;
        match data {
            None => self.emit(Initiated { order_id, secret_hash, amount }),
            Some(destination_data) => self
                .emit(InitiatedWithDestinationData { order_id, secret_hash, amount, destination_data }),
        }
        super::take(self.token.read(), payer, amount);
    }

    fn end(ref self: ContractState, order_id: felt252, order: Order) {
        self.orders.write(order_id, Order { fulfilled_at: super::block(), ..order });
    }

    fn give_back(ref self: ContractState, order_id: felt252, order: Order) {
        end(ref self, order_id, order);
        self.emit(Refunded { order_id });
        super::pay(self.token.read(), order.initiator, order.amount);
    }
}
