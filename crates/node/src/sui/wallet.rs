//! The wallet context for signing: the gas price, coins that pay for gas, balances, and the initial shared version of an object.

use countersign::sui::sui_sdk_types::{Address, ObjectReference, StructTag, TypeTag};
use countersign::sui::{Coin, Gas, MAX_GAS_COINS, choose_gas, htlc};
use countersign::{Code, Contract, Refusal, U256};
use countersign_client::Transport;

use super::messages::{FieldMask, GetBalanceRequest, GetEpochRequest, ListOwnedObjectsRequest, Object};
use super::{SuiChain, address, digest, missing, objects, own_address};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::Speed;
use crate::quorum::agree;

/// The fields that are read of a coin.
const COIN: [&str; 5] = ["object_id", "version", "digest", "object_type", "balance"];
/// The number of coins in a page.
const PAGE: u32 = 500;
/// The maximum number of pages that are read. A transaction can use 256 coins, and merges those that it uses.
const MAX_PAGES: usize = 4;
/// `Owner.kind` of a shared object.
const SHARED: i32 = 3;

/// The gas price, and the coins that can pay for gas.
pub(super) struct GasCoins {
    /// The price of one unit of gas, in MIST.
    pub(super) price: u64,
    coins: Vec<Coin>,
}

impl GasCoins {
    /// Returns the maximum that the coins of one transaction can hold, in MIST.
    pub(super) fn total(&self) -> u64 {
        let mut balances: Vec<_> = self.coins.iter().map(|coin| coin.balance).collect();
        balances.sort_unstable_by(|one, other| other.cmp(one));
        balances.into_iter().take(MAX_GAS_COINS).fold(0, u64::saturating_add)
    }

    /// Selects coins that cover `budget` and `split`, the amount that the transaction splits off from them. Both are in MIST.
    pub(super) fn gas(&self, split: u64, budget: u64) -> Result<Gas, Refusal> {
        Ok(Gas::new(self.price, budget, choose_gas(&self.coins, split, budget)?))
    }
}

impl<'n, T: Transport> SuiChain<'n, T> {
    /// Reads the price of one unit of gas, in MIST: the reference price of the current epoch, times 1 (slow), 1.1 (normal) or 2 (fast).
    ///
    /// A price above the reference price helps if many transactions change the same object, and at the change of an epoch. The first
    /// endpoint that answers decides.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers.
    pub async fn gas_price(&self, speed: Speed) -> Result<u64, NodeError> {
        self.connection.first(|caller| self.price(caller, speed)).await
    }

    async fn price(&self, caller: Caller<'n, T>, speed: Speed) -> Result<u64, NodeError> {
        self.identify(caller).await?;
        let request = GetEpochRequest { read_mask: FieldMask::new(&["reference_gas_price"]) };
        let epoch = caller.grpc(&request).await?.epoch;
        let price = epoch.and_then(|epoch| epoch.reference_gas_price).ok_or_else(|| missing(caller, "/epoch/reference_gas_price"))?;
        let tenths: u64 = match speed {
            Speed::Slow => 10,
            Speed::Normal => 11,
            Speed::Fast => 20,
        };
        Ok(price.saturating_mul(tenths).div_ceil(10))
    }

    /// Reads the SUI coins of an account at their newest versions: at most 2,000 of them.
    ///
    /// The first endpoint that answers decides. A coin that does not exist can only make the transaction fail.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers.
    pub async fn coins(&self, owner: Address) -> Result<Vec<Coin>, NodeError> {
        self.connection.first(|caller| self.owned(caller, owner)).await
    }

    async fn owned(&self, caller: Caller<'n, T>, owner: Address) -> Result<Vec<Coin>, NodeError> {
        self.identify(caller).await?;
        let coin_type = StructTag::coin(htlc::sui());
        let (mut coins, mut page_token) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let request = ListOwnedObjectsRequest {
                owner: Some(owner.to_string()),
                page_size: Some(PAGE),
                page_token,
                read_mask: FieldMask::new(&COIN),
                object_type: Some(coin_type.to_string()),
            };
            let page = caller.grpc(&request).await?;
            for object in page.objects {
                coins.push(coin(caller, object, &coin_type)?);
            }
            page_token = page.next_page_token.filter(|token| !token.is_empty());
            if page_token.is_none() {
                break;
            }
        }
        Ok(coins)
    }

    /// Reads the gas price and the coins that can pay for gas, from one endpoint.
    pub(super) async fn gas_coins(&self, owner: Address, speed: Speed) -> Result<GasCoins, NodeError> {
        let ask =
            async |caller: Caller<'n, T>| Ok(GasCoins { price: self.price(caller, speed).await?, coins: self.owned(caller, owner).await? });
        self.connection.first(ask).await
    }

    /// Reads the balance of an account in base units of a coin. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, coin_type: &TypeTag) -> Result<u64, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            balance(caller, owner, coin_type).await
        };
        let balances = agree(self.connection.each(ask).await, self.connection.needed(), |balance| *balance)?;
        Ok(balances.first().copied().unwrap_or_default())
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let malformed = |text: &str| Refusal::new(Code::AddressMalformed, "/token").with_actual(text);
        let coin_type = match token {
            Some(token) => token.text.parse().map_err(|_| malformed(&token.text))?,
            None => htlc::sui(),
        };
        self.balance(own_address(owner, "/owner")?, &coin_type).await.map(U256::from)
    }

    /// Reads the version at which an object was shared. A call that uses the object must contain this version. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::UnknownRegistry`] if the object does not exist or is not shared, and another
    /// [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn initial_shared_version(&self, object: Address) -> Result<u64, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let found = objects(caller, &[object], &["object_id", "owner"]).await?.pop().flatten();
            Ok(found.and_then(|object| object.owner).filter(|owner| owner.kind == Some(SHARED)).and_then(|owner| owner.version))
        };
        let versions = agree(self.connection.each(ask).await, self.connection.needed(), |version| *version)?;
        let version = versions.first().copied().flatten();
        let refusal = || Refusal::new(Code::UnknownRegistry, "/registry").with_reason("there is no shared object with this id");
        version.ok_or_else(|| refusal().with_actual(object.to_string()).into())
    }
}

fn coin<T: Transport>(caller: Caller<'_, T>, object: Object, coin_type: &StructTag) -> Result<Coin, NodeError> {
    if object.object_type.as_deref().map(str::parse).and_then(Result::ok).as_ref() != Some(coin_type) {
        let refusal = Refusal::new(Code::WrongType, "/objects/object_type").with_expected(coin_type.to_string());
        return Err(caller.malformed(refusal.with_actual(object.object_type.unwrap_or_default())));
    }
    let id = address(caller, object.object_id.as_deref(), "/objects/object_id")?;
    let version = object.version.ok_or_else(|| missing(caller, "/objects/version"))?;
    let digest = digest(caller, object.digest, "/objects/digest")?;
    let balance = object.balance.ok_or_else(|| missing(caller, "/objects/balance"))?;
    Ok(Coin::new(ObjectReference::new(id, version, digest), balance))
}

/// Reads the balance of an account from one endpoint. Nodes omit a balance of 0.
pub(super) async fn balance<T: Transport>(caller: Caller<'_, T>, owner: Address, coin_type: &TypeTag) -> Result<u64, NodeError> {
    let request = GetBalanceRequest { owner: Some(owner.to_string()), coin_type: Some(coin_type.to_string()) };
    let balance = caller.grpc(&request).await?.balance.ok_or_else(|| missing(caller, "/balance"))?;
    Ok(balance.balance.unwrap_or_default())
}
