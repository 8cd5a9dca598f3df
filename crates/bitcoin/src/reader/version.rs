//! Whether a node knows the rules of its chain.

use countersign_core::chains::{BitcoinNet, Coin};
use countersign_core::reader::{Fault, Identity, Judged, Known, Machine, Replies, Request, Turn};
use countersign_core::{Code, Refusal};

use super::{NamedChain, esplora, rpc};
use crate::address::Chain;

/// Litecoin Core 0.21.5.8, with the rules of blocks 3,154,440 and 3,172,640.
const LITECOIN: u64 = 210_508;

/// Checks that a node's own RPC is that of a version with the newest rules of its chain (`getnetworkinfo`). An older node can follow a chain
/// that others reject. A refusal has the code [`Code::NodeOutdated`]. An Esplora server does not say which node it asks.
#[derive(Debug)]
pub struct VersionCheck {
    chain: NamedChain,
    is_rpc: bool,
}

/// Returns the first version of a node that knows the newest rules of a chain; `None` if those are older than anything that the library
/// talks to.
#[must_use]
pub const fn least(chain: Chain) -> Option<u64> {
    match chain {
        Chain { coin: Coin::Litecoin, net: BitcoinNet::Main } => Some(LITECOIN),
        _ => None,
    }
}

impl Machine for VersionCheck {
    type Subject = NamedChain;
    type Output = Judged<()>;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &NamedChain, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let request = if known.is_rpc() { rpc::network() } else { esplora::newest() };
        Ok((Self { chain: subject.clone(), is_rpc: known.is_rpc() }, vec![request]))
    }

    fn identity(&self) -> Identity {
        self.chain.identity(self.is_rpc)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Judged<()>>, Fault> {
        let cursor = replies.json(0)?;
        let (true, Some(least)) = (self.is_rpc, least(self.chain.chain)) else { return Ok(Turn::Done(Judged(Ok(())))) };
        let version = cursor.object()?.need("version")?;
        let is_new = u64::try_from(version.any_number()?).is_ok_and(|version| version >= least);
        let refuse = || Refusal::new(Code::NodeOutdated, "/version").with_expected(format!("at least {least}"));
        Ok(Turn::Done(Judged(if is_new { Ok(()) } else { Err(refuse().with_actual(version.any_number()?)) })))
    }
}
