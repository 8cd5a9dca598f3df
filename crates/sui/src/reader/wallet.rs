//! Reads the wallet context: the newest checkpoint, the gas price, balances, coins, and the initial shared version of an object.

use std::fmt;

use countersign_core::reader::{Agree, Equal, Fault, Head, Identity, Judged, Known, Machine, Question, Replies, Reply, Request, Turn};
use countersign_core::{BlockHeight, Code, Refusal};
use sui_sdk_types::{Address, ObjectReference, StructTag, TypeTag};

use super::fields::{balance, epoch, found_balance, found_coin, found_epoch, metadata, method, object, owner, page};
use super::proto::{Message, Writer};
use super::transactions::{read_epoch, request_epoch};
use super::{Checkpoint, On, address, digest, grpc, identity, objects};
use crate::gas::Coin;
use crate::htlc;

/// The fields that are read of a coin.
const COIN: [&str; 5] = ["object_id", "version", "digest", "object_type", "balance"];
/// The number of coins in a page.
const PAGE: u16 = 500;
/// The maximum number of pages that are read. A transaction can use 256 coins, and merges those that it uses.
const MAX_PAGES: usize = 4;
/// `Owner.kind` of a shared object.
const SHARED: u64 = 3;

/// Asks for the newest checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the network is the whole question")]
pub struct NewestCheckpoint;

impl Question for On<NewestCheckpoint> {
    type Output = Head;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![Checkpoint::newest()]
    }

    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<Head, Fault> {
        Ok(Checkpoint::read(&replies.get(0)?, known)?.head())
    }

    fn height(head: &Head) -> BlockHeight {
        head.height
    }
}

/// Asks for the reference price of the current epoch, in MIST per unit of gas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the network is the whole question")]
pub struct ReferenceGasPrice;

impl Question for On<ReferenceGasPrice> {
    type Output = Equal<u64>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![grpc::request(method::GET_EPOCH, &Writer::default().mask(2, &["reference_gas_price"]))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<u64>, Fault> {
        let epoch: Message<'_> = grpc::read(&replies.get(0)?)?.need(found_epoch::EPOCH)?;
        epoch.need(epoch::REFERENCE_GAS_PRICE).map(Equal)
    }
}

/// Asks for the balance of an account in a coin, in base units: of its coin objects and its address balance together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a balance is of an account and a coin")]
pub struct Balance {
    /// The account.
    pub owner: Address,
    /// The coin.
    pub coin_type: TypeTag,
}

impl Question for On<Balance> {
    type Output = Equal<u64>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![request_balance(self.subject.owner, &self.subject.coin_type)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<u64>, Fault> {
        read_balance(&replies.get(0)?).map(Equal)
    }
}

pub(super) fn request_balance(owner: Address, coin_type: &TypeTag) -> Request {
    grpc::request(method::GET_BALANCE, &Writer::default().bytes(1, owner.to_string()).bytes(2, coin_type.to_string()))
}

fn read_balance(reply: &Reply<'_>) -> Result<u64, Fault> {
    let balance: Message<'_> = grpc::read(reply)?.need(found_balance::BALANCE)?;
    Ok(balance.get(balance::BALANCE)?.unwrap_or_default())
}

/// Where the balance of an account in a coin is, in base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Holdings {
    /// What its coin objects hold.
    pub coins: u64,
    /// What its address balance holds, without any coin object.
    pub address_balance: u64,
}

impl Holdings {
    /// Returns the sum.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.coins.saturating_add(self.address_balance)
    }
}

impl fmt::Display for Holdings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "coin objects hold {}, and the address balance {}", self.coins, self.address_balance)
    }
}

/// Reads the parts of a balance. Nodes omit what is 0. One that shows no part at all is older than address balances: everything is in
/// coins.
pub(super) fn read_holdings(reply: &Reply<'_>) -> Result<Holdings, Fault> {
    let message: Message<'_> = grpc::read(reply)?.need(found_balance::BALANCE)?;
    let (coins, address_balance) = (message.get(balance::COIN_BALANCE)?, message.get(balance::ADDRESS_BALANCE)?);
    let coins = match (coins, address_balance) {
        (None, None) => message.get(balance::BALANCE)?,
        _ => coins,
    };
    Ok(Holdings { coins: coins.unwrap_or_default(), address_balance: address_balance.unwrap_or_default() })
}

/// Asks where the balance of an account in a coin is: in coin objects, or in its address balance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a balance is of an account and a coin")]
pub struct WhereHeld {
    /// The account.
    pub owner: Address,
    /// The coin.
    pub coin_type: TypeTag,
}

impl Question for On<WhereHeld> {
    type Output = Equal<Holdings>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![request_balance(self.subject.owner, &self.subject.coin_type)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<Holdings>, Fault> {
        read_holdings(&replies.get(0)?).map(Equal)
    }
}

/// Asks for the number of the current epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the network is the whole question")]
pub struct CurrentEpoch;

impl Question for On<CurrentEpoch> {
    type Output = Equal<u64>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![request_epoch()]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<u64>, Fault> {
        read_epoch(&replies.get(0)?).map(Equal)
    }
}

/// Asks whether a coin has the decimals that the registry pins. A refusal has the code [`Code::DecimalsDiffer`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "decimals are of a coin")]
pub struct CoinDecimals {
    /// The coin.
    pub coin_type: TypeTag,
    /// What the registry pins.
    pub pinned: u8,
}

impl Question for On<CoinDecimals> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![grpc::request(method::GET_COIN_INFO, &Writer::default().bytes(1, self.subject.coin_type.to_string()))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let found: Message<'_> = grpc::read(&replies.get(0)?)?;
        // Nodes omit a number that is 0, but not the metadata around it.
        let shown = match found.get::<Message<'_>>(found_coin::METADATA)? {
            Some(metadata) => Some(metadata.get(metadata::DECIMALS)?.unwrap_or(0_u64)),
            None => None,
        };
        let pinned = u64::from(self.subject.pinned);
        let refusal = || Refusal::new(Code::DecimalsDiffer, "/token").with_expected(pinned);
        Ok(Judged(match shown {
            Some(shown) if shown == pinned => Ok(()),
            Some(shown) => Err(refusal().with_actual(shown)),
            None => Err(refusal().with_reason("the coin does not show its decimals")),
        }))
    }
}

/// Asks for the version at which an object was shared; `None` if it does not exist or is not shared. A call that uses the object must
/// contain this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct InitialSharedVersion(pub Address);

impl Question for On<InitialSharedVersion> {
    type Output = Equal<Option<u64>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![objects::request(&[self.subject.0], &["object_id", "owner"])]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<Option<u64>>, Fault> {
        let found = objects::read(&replies.get(0)?, &[self.subject.0])?.pop().flatten();
        let Some(owner) = found.map(|object| object.get::<Message<'_>>(object::OWNER)).transpose()?.flatten() else {
            return Ok(Equal(None));
        };
        let is_shared = owner.get(owner::KIND)? == Some(SHARED);
        Ok(Equal(owner.get(owner::VERSION)?.filter(|_| is_shared)))
    }
}

/// Asks whether coins of SUI exist at exactly these versions and digests, with these balances, and have not been spent.
///
/// A transaction uses a coin only if enough endpoints say so. A simulation does not show it, because nodes may also load the old version
/// of a spent coin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct HeldCoins(pub Vec<Coin>);

impl Question for On<HeldCoins> {
    type Output = Equal<bool>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![objects::request(&ids(&self.subject.0), &COIN)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<bool>, Fault> {
        let coins = &self.subject.0;
        for (found, expected) in objects::read(&replies.get(0)?, &ids(coins))?.into_iter().zip(coins) {
            if found.map(coin).transpose()?.as_ref() != Some(expected) {
                return Ok(Equal(false));
            }
        }
        Ok(Equal(true))
    }
}

fn ids(coins: &[Coin]) -> Vec<Address> {
    coins.iter().map(|coin| *coin.reference.object_id()).collect()
}

/// The coins that an endpoint lists. Lists of honest endpoints differ while coins arrive, so each is judged alone: see [`HeldCoins`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct ListedCoins(pub Vec<Coin>);

impl Agree for ListedCoins {
    type Key = ();

    fn key(&self) {}
}

/// Lists the SUI coins of an account at their newest versions: at most 2,000 of them, in at most four rounds.
#[derive(Debug)]
pub struct OwnedCoins {
    owner: Address,
    identity: Identity,
    pages: usize,
    coins: Vec<Coin>,
}

impl Machine for OwnedCoins {
    type Subject = On<Address>;
    type Output = ListedCoins;
    const MAX_ROUNDS: usize = MAX_PAGES;

    fn start(on: &On<Address>, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine = Self { owner: on.subject, identity: identity(&on.network)?, pages: 0, coins: Vec::new() };
        let first = machine.page(None);
        Ok((machine, vec![first]))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<ListedCoins>, Fault> {
        let found = grpc::read(&replies.get(0)?)?;
        for object in found.all(page::OBJECTS, PAGE.into())? {
            self.coins.push(coin(object)?);
        }
        self.pages = self.pages.saturating_add(1);
        let next = found.get::<&[u8]>(page::NEXT_PAGE_TOKEN)?.filter(|token| !token.is_empty() && self.pages < MAX_PAGES);
        Ok(match next {
            Some(token) => Turn::Ask(vec![self.page(Some(token))]),
            None => Turn::Done(ListedCoins(std::mem::take(&mut self.coins))),
        })
    }
}

impl OwnedCoins {
    fn page(&self, token: Option<&[u8]>) -> Request {
        let message = Writer::default().bytes(1, self.owner.to_string()).number(2, PAGE.into());
        let message = token.into_iter().fold(message, |message, token| message.bytes(3, token));
        grpc::request(method::LIST_OWNED_OBJECTS, &message.mask(4, &COIN).bytes(5, StructTag::coin(htlc::sui()).to_string()))
    }
}

fn coin(found: Message<'_>) -> Result<Coin, Fault> {
    let (expected, actual) = (StructTag::coin(htlc::sui()), found.get::<&str>(object::OBJECT_TYPE)?.unwrap_or_default());
    if actual.parse::<StructTag>().as_ref() != Ok(&expected) {
        let refusal = Refusal::new(Code::WrongType, object::OBJECT_TYPE.1).with_expected(expected.to_string());
        return Err(refusal.with_actual(actual).into());
    }
    let id = address(found.need(object::OBJECT_ID)?, object::OBJECT_ID)?;
    let digest = digest(found.need(object::DIGEST)?, object::DIGEST)?;
    Ok(Coin::new(ObjectReference::new(id, found.need(object::VERSION)?, digest), found.need(object::BALANCE)?))
}
