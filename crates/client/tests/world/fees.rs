//! Computes the owner's fees from the endpoints' answers, by each family's rules. Whatever one of three endpoints
//! shows, the fee is at most twice that of honest answers. If it replaces an overdue transaction, it is at most four
//! times that.

use countersign_client::countersign::bitcoin::reader::{FeeEstimation, NamedChain, OnChain as OnBitcoin, fees as bitcoin_fees};
use countersign_client::countersign::evm::Fees;
use countersign_client::countersign::evm::alloy_primitives::Address as EvmAddress;
use countersign_client::countersign::evm::reader::{Context as EvmContext, OnChain as OnEvm, fees as evm_fees, pending_nonce};
use countersign_client::countersign::reader::{Agree, Known, Machine, Reader};
use countersign_client::countersign::solana::reader::{Context as SolanaContext, ContextQuery, wallet_context};
use countersign_client::countersign::starknet::reader::{Context as StarknetContext, Sender, execution, raised};
use countersign_client::countersign::starknet::{Felt, InvokeTransaction, ResourceBounds, TxContext, felt};
use countersign_client::countersign::{Leg, chains::Network, evidence::HtlcTerms};
use countersign_transport::{Memory, gather_all};

use super::kinds::Kind;
use super::{World, Worlds, place_of};
use countersign_testkit::chain::view::chain_id;

/// The endpoints' estimates for this many blocks.
const BLOCKS: u16 = 2;

/// The fees that a transaction offers.
#[derive(Debug, Clone)]
pub enum Price {
    Evm(Fees),
    Starknet(Box<TxContext>),
    /// A price that consists of one number.
    One(u128),
}

/// A price, with the other values that the transaction depends on.
#[derive(Debug)]
struct Quote {
    price: Price,
    context: String,
}

impl Price {
    fn components(&self) -> Vec<u128> {
        match self {
            Self::Evm(Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas }) => vec![*max_fee_per_gas, *max_priority_fee_per_gas],
            Self::Evm(Fees::Legacy { gas_price }) => vec![*gas_price],
            Self::Evm(other) => panic!("{other:?}"),
            Self::Starknet(context) => {
                let ResourceBounds { l1_gas, l2_gas, l1_data_gas, .. } = &context.resource_bounds;
                [l1_gas, l2_gas, l1_data_gas].iter().flat_map(|bound| [bound.max_amount.into(), bound.max_price_per_unit]).collect()
            }
            Self::One(price) => vec![*price],
        }
    }

    /// Returns the replacement of an overdue offer, given the current offer.
    fn instead_of(self, before: Self, terms: &HtlcTerms) -> Self {
        match (before, self) {
            (Self::Evm(before), Self::Evm(now)) => {
                Self::Evm(evm_fees::overdue(before, now, evm_fees::limit(&Default::default(), terms.profile())))
            }
            (Self::Starknet(before), Self::Starknet(now)) => {
                let before = InvokeTransaction::new(Felt::ONE, Vec::new(), before.nonce, before.resource_bounds);
                Self::Starknet(Box::new(raised(&before, *now)))
            }
            (_, now) => now,
        }
    }
}

/// The source of a reader's answers.
#[derive(Clone, Copy)]
enum From<'w> {
    /// The endpoints, one of which may lie.
    Endpoints(&'w Worlds),
    /// One honest endpoint, without a network between.
    Honest,
}

impl World {
    /// Returns each endpoint's answers, if enough endpoints agree.
    async fn shown<M: Machine<Output: Agree>>(&self, leg: Leg, from: From<'_>, subject: &M::Subject) -> Option<Vec<M::Output>> {
        let From::Endpoints(worlds) = from else {
            let mut reader = Reader::<M>::new(subject, &Known::default()).unwrap();
            while let countersign_client::countersign::reader::Next::Ask(requests) = reader.next() {
                let answers = self.look(&self.now(), leg, requests, None, 0);
                reader.answer(&answers).unwrap();
            }
            return Some(vec![reader.finish().unwrap().into_output()]);
        };
        let start = |known: &Known| Reader::<M>::new(subject, known);
        let quorum = gather_all(worlds, worlds, &Memory::default(), &self.terms(leg).chain, start).await.unwrap();
        Some(quorum.agreed::<()>().ok()?.into_iter().map(|one| one.output().clone()).collect())
    }

    async fn quote(&self, leg: Leg, from: From<'_>) -> Option<Quote> {
        let (terms, needed) = (self.terms(leg), if matches!(from, From::Honest) { 1 } else { self.plan.endpoints / 2 + 1 });
        Some(match self.kind(leg) {
            Kind::Evm | Kind::Bnb => {
                let subject = OnEvm { chain_id: chain_id(&terms.network), subject: EvmAddress::ZERO };
                let shown = self.shown::<EvmContext>(leg, from, &subject).await?;
                let prices: Vec<_> = shown.iter().map(|one| one.prices).collect();
                Quote { price: Price::Evm(evm_fees::levels(&prices)?.normal), context: pending_nonce(&shown, needed)?.to_string() }
            }
            Kind::Starknet => {
                let Network::Starknet(network) = &terms.network else { panic!("{terms:?}") };
                let sender = Sender { chain_id: felt::from_short_string(network).unwrap(), address: Felt::ONE, calls: None };
                let shown = self.shown::<StarknetContext>(leg, from, &sender).await?;
                let context = execution(&sender, &shown.iter().collect::<Vec<_>>(), 15, true).ok()?;
                Quote { context: context.nonce.to_string(), price: Price::Starknet(Box::new(context)) }
            }
            Kind::Solana | Kind::Spl => {
                let shown = self.shown::<SolanaContext>(leg, from, &ContextQuery::new(&terms.network, &[], 50)).await?;
                let context = wallet_context(&shown, needed, false)?;
                let price = context.priority_fee.map_or(0, |fee| fee.compute_unit_price);
                Quote { price: Price::One(price.into()), context: format!("{:?}", context.recent_blockhash) }
            }
            Kind::Bitcoin | Kind::Litecoin => {
                let chain = NamedChain::from_network(&terms.network, &terms.chain).unwrap();
                let shown = self.shown::<FeeEstimation>(leg, from, &OnBitcoin::new(chain, BLOCKS)).await?;
                let rate = bitcoin_fees::middle(&shown, false)?.rate();
                Quote { price: Price::One(bitcoin_fees::per_thousand(rate).to_sat().into()), context: String::new() }
            }
            // What these offer is decided where nodes are connected.
            Kind::Tron | Kind::Sui => Quote { price: Price::One(0), context: String::new() },
        })
    }

    /// Returns the fees that a transaction offers, or `None` if too few endpoints agree.
    pub async fn offer(&self, worlds: &Worlds, leg: Leg, is_overdue: bool) -> Option<()> {
        if !worlds.connected {
            return Some(());
        }
        let quote = self.quote(leg, From::Endpoints(worlds)).await?;
        let honest = self.quote(leg, From::Honest).await.unwrap();
        let mut state = self.state.lock().unwrap();
        let before = state.offers[place_of(leg)].take().filter(|_| is_overdue);
        let limit = if before.is_some() { 4 } else { 2 };
        let price = match before {
            Some(before) => quote.price.instead_of(before, self.terms(leg)),
            None => quote.price,
        };
        let (offered, fair) = (price.components(), honest.price.components());
        let is_fair = offered.len() == fair.len() && offered.iter().zip(&fair).all(|(offered, fair)| *offered <= fair * limit);
        if !is_fair || quote.context != honest.context {
            state.violations.push(format!("offers {offered:?} with {}, and {fair:?} with {} is fair", quote.context, honest.context));
        }
        state.offers[place_of(leg)] = Some(price);
        *state.counts.entry(if limit == 4 { "an overdue offer" } else { "an offer" }).or_default() += 1;
        Some(())
    }
}
