//! Whether an account can be paid in a coin.
//!
//! Whoever issues a regulated coin may deny it to an account, or pause it for everybody. The network checks that at the end of an execution
//! that succeeded, for every owner of a coin object that it has written, whatever the coin holds. So the rehearsal of a redemption cannot show
//! it: the wrong secret ends the execution before that.
//!
//! Source: `sui-types/src/deny_list_v2.rs` and `sui-rpc-api`'s simulation, <https://github.com/MystenLabs/sui>.

use countersign_core::reader::{Ask, Fault, Identity, Judged, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal};
use sui_sdk_types::{
    Address, Argument, Command, GasPayment, Input, Mutability, ProgrammableTransaction, SharedInput, Transaction, TransactionExpiration,
    TransactionKind, TransferObjects, TypeTag,
};

use super::fields::{bcs as encoded, effects, execution, execution_error, found_simulation, method, output, outputs, transaction};
use super::proto::{Message, Writer};
use super::transactions::{bcs, failure};
use super::{On, grpc, identity};
use crate::{htlc, kind};

/// The object that has the deny lists of all coins, on every network.
pub const DENY_LIST: Address = Address::from_static("0x403");
/// The fields that are read of the simulation.
const ENDED: [&str; 2] = ["transaction.effects.status", "command_outputs"];
/// The commands of the transaction.
const COMMANDS: usize = 4;
/// The budget in units of gas, and in MIST for storage: several times what the transfer spends. Nobody pays it.
const UNITS: u64 = 5_000;
const STORAGE: u64 = 25_000_000;
/// `ExecutionError.kind`: the account is on the coin's deny list.
const ADDRESS_DENIED_FOR_COIN: u64 = 35;
/// `ExecutionError.kind`: the coin is paused for everybody.
const COIN_TYPE_GLOBAL_PAUSE: u64 = 36;

/// Asks whether an account can receive a coin and use it. A node simulates a transaction that creates a coin object with a balance of zero and
/// transfers it to the account. The transaction contains nothing of an order. It needs no signature and no gas coins, because the node
/// simulates with a gas coin of its own.
///
/// An entry in a deny list stops an account from using the coin at once, but from receiving it only in the next epoch. So the same
/// transaction also asks whether the lists of the next epoch deny the account or pause the coin.
///
/// A refusal has the code [`Code::ReceiverNotPayable`] if the coin denies the account or is paused, and [`Code::SimulationReverted`] if the
/// transfer fails for another reason. A node that does not simulate says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// The BCS bytes of the transaction.
    bytes: Vec<u8>,
}

/// Asks one endpoint whether an account can be paid.
pub type ReceiverCheck = Ask<On<Receiver>>;

impl Receiver {
    /// Creates the question for an account and a coin, without the enclosing `Coin<..>`. `deny_list` is the version at which [`DENY_LIST`] was
    /// shared. The price is in MIST per unit of gas, at least the network's reference price.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] at `/destination` if the transaction cannot be encoded.
    pub fn new(account: Address, coin_type: &TypeTag, deny_list: u64, gas_price: u64) -> Result<Self, Refusal> {
        let transfer = TransferObjects { objects: vec![Argument::Result(0)], address: Argument::Input(0) };
        let next = |function, arguments| htlc::of_coin(function, coin_type, arguments);
        let commands = vec![
            htlc::of_coin("zero", coin_type, Vec::new()),
            Command::TransferObjects(transfer),
            next("deny_list_v2_contains_next_epoch", vec![Argument::Input(1), Argument::Input(0)]),
            next("deny_list_v2_is_global_pause_enabled_next_epoch", vec![Argument::Input(1)]),
        ];
        let list = SharedInput::new(DENY_LIST, deny_list, Mutability::Immutable);
        let inputs = vec![Input::Pure(account.as_bytes().to_vec()), Input::Shared(list)];
        let budget = gas_price.saturating_mul(UNITS).saturating_add(STORAGE);
        let transaction = Transaction {
            kind: TransactionKind::ProgrammableTransaction(ProgrammableTransaction { inputs, commands }),
            sender: account,
            gas_payment: GasPayment { objects: Vec::new(), owner: account, price: gas_price, budget },
            expiration: TransactionExpiration::None,
        };
        let bytes = kind::encode_transaction(&transaction).ok_or_else(|| Refusal::new(Code::Internal, "/destination"))?;
        Ok(Self { bytes })
    }
}

impl Question for On<Receiver> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![grpc::request(method::SIMULATE_TRANSACTION, &Writer::default().bytes(1, bcs(&self.subject.bytes)).mask(2, &ENDED))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let simulated = grpc::read(&replies.get(0)?)?;
        let executed: Message<'_> = simulated.need(found_simulation::TRANSACTION)?;
        let refuse = |code, reason: String| Ok(Judged(Err(Refusal::new(code, "/destination").with_reason(reason))));
        if let Some(words) = failure(executed)? {
            return match error_kind(executed)? {
                Some(ADDRESS_DENIED_FOR_COIN) => refuse(Code::ReceiverNotPayable, format!("{DENIED} ({words})")),
                Some(COIN_TYPE_GLOBAL_PAUSE) => refuse(Code::ReceiverNotPayable, format!("{PAUSED} ({words})")),
                _ => refuse(Code::SimulationReverted, format!("a transfer of nothing to the receiver fails ({words})")),
            };
        }
        let commands = simulated.all(found_simulation::COMMAND_OUTPUTS, COMMANDS)?;
        let [_, _, is_denied, is_paused] = commands.as_slice() else { return Err(found_simulation::COMMAND_OUTPUTS.missing()) };
        match (flag(*is_denied)?, flag(*is_paused)?) {
            (true, _) => {
                refuse(Code::ReceiverNotPayable, format!("{DENIED}; it cannot use the coin, and from the next epoch on not get it"))
            }
            (_, true) => {
                refuse(Code::ReceiverNotPayable, format!("{PAUSED}; nobody can use it, and from the next epoch on nobody can get it"))
            }
            _ => Ok(Judged(Ok(()))),
        }
    }
}

const DENIED: &str = "the coin's deny list has the receiver";
const PAUSED: &str = "the coin is paused";

/// Returns the `bool` that a command returned.
fn flag(command: Message<'_>) -> Result<bool, Fault> {
    let values = command.all(outputs::RETURN_VALUES, 1)?;
    let Some(value) = values.first() else { return Err(outputs::RETURN_VALUES.missing()) };
    match value.need::<Message<'_>>(output::VALUE)?.need::<&[u8]>(encoded::VALUE)? {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(output::VALUE.wrong("a bool")),
    }
}

/// Returns the kind of a failed execution's error, if the node states one.
fn error_kind(executed: Message<'_>) -> Result<Option<u64>, Fault> {
    let status: Message<'_> = executed.need::<Message<'_>>(transaction::EFFECTS)?.need(effects::STATUS)?;
    let error = status.get::<Message<'_>>(execution::ERROR)?;
    Ok(error.map(|error| error.get(execution_error::KIND)).transpose()?.flatten())
}
