//! What a preflight on EVM and Tron requires of the transfer that an order makes: the contract holds the approved token, the sender has
//! enough of it, and the calls transfer what was verified and nothing else.

use alloy_primitives::{Address, U256};
use countersign_core::reader::{check_allowance, check_balance};
use countersign_core::{Code, Refusal, text};

use crate::read::Transfer;
use crate::rules::AddressCodec;

/// The transfer of a verified order, from the sender to the HTLC.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct Expected {
    /// The contract that receives.
    pub htlc: Address,
    /// The amount in base units.
    pub amount: U256,
    /// Whether the chain's own coin is paid, and not a token.
    pub is_native: bool,
    /// The token that an approval names.
    pub approved: Option<Address>,
    /// Whether the calls include the approval.
    pub approves: bool,
}

impl Expected {
    /// Requires that the contract holds the token that the approval names.
    ///
    /// # Errors
    ///
    /// [`Code::SimulationDiffers`] at `/token`.
    pub fn check_token(&self, token: Address, codec: &AddressCodec) -> Result<(), Refusal> {
        match self.approved {
            Some(approved) if approved != token => {
                let refusal = Refusal::new(Code::SimulationDiffers, "/token").with_reason("the contract holds another token");
                Err(refusal.with_expected(codec.account(approved)).with_actual(codec.account(token)))
            }
            _ => Ok(()),
        }
    }

    /// Requires that the sender has enough of the token, and that the HTLC may take it.
    ///
    /// # Errors
    ///
    /// [`Code::InsufficientFunds`] at `/token`, [`Code::AllowanceTooLow`] at `/allowance`.
    pub fn check_funds(&self, has: U256, allowance: U256) -> Result<(), Refusal> {
        check_balance("/token", "of the token", self.amount, has)?;
        if self.approves { Ok(()) } else { check_allowance(self.amount, allowance) }
    }
}

/// Two accounts that are parties to no order, because nobody has their keys. A transfer of nothing between them shows whether a token takes
/// such transfers at all, whomever it has frozen.
pub const BYSTANDERS: [Address; 2] = [Address::new(*b"countersign control1"), Address::new(*b"countersign control2")];

/// Requires that a token lets the HTLC pay out: a token that has frozen the HTLC may still take a payment to it.
///
/// The arguments are the outcomes of transfers of nothing: the reason if one fails. The first is by the HTLC to the sender. The others are
/// by the sender to the HTLC, and between [`BYSTANDERS`]; if all of them fail, the token refuses empty transfers, and nothing is shown.
///
/// # Errors
///
/// [`Code::SimulationReverted`] at `/token`.
pub fn check_payout(by_htlc: Option<String>, by_others: &[Option<String>; 2]) -> Result<(), Refusal> {
    match by_htlc {
        Some(why) if by_others.iter().any(Option::is_none) => {
            let reason = format!("the token does not let the HTLC pay out, so it may be frozen ({})", text::escape_untrusted(&why));
            Err(Refusal::new(Code::SimulationReverted, "/token").with_reason(reason))
        }
        _ => Ok(()),
    }
}

/// Who will be paid what by which contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct Receiver<A> {
    /// The token; `None` for the chain's own coin.
    pub token: Option<A>,
    /// The HTLC that pays.
    pub htlc: A,
    /// The account that receives.
    pub receiver: A,
    /// The amount, in base units, if the HTLC holds it; `None` before that.
    pub amount: Option<U256>,
}

impl<A: Copy + From<Address>> Receiver<A> {
    /// Returns the transfers of nothing whose outcomes [`Payability::read`] reads, in its order: who transfers, and to whom.
    #[must_use]
    pub fn empty_transfers(&self) -> [(A, A); 4] {
        let ([one, other], Self { htlc, receiver, .. }) = (BYSTANDERS.map(A::from), *self);
        [(one, other), (htlc, htlc), (htlc, receiver), (receiver, htlc)]
    }
}

/// What a token shows about the receiver of an HTLC. Each outcome is the reason if the call fails.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "both families fill in every member")]
pub struct Payability {
    /// A transfer of nothing between [`BYSTANDERS`], and one by the HTLC to itself. If both fail, the token refuses empty transfers, and the
    /// next two show nothing. The first is for tokens that have frozen the HTLC, the second for those that serve only accounts they know.
    pub controls: [Option<String>; 2],
    /// A transfer of nothing, by the HTLC to the receiver.
    pub to_receiver: Option<String>,
    /// A transfer of nothing, by the receiver to the HTLC.
    pub by_receiver: Option<String>,
    /// A transfer of the whole amount, by the HTLC to the receiver; `None` before the HTLC holds it.
    pub payment: Option<Result<(), String>>,
    /// Whether the token says that it is paused.
    pub is_paused: bool,
}

impl Payability {
    /// Reads what the token shows. `outcome` returns the outcome of a call: of the four [empty transfers](Receiver::empty_transfers), and of
    /// the payment, which is the sixth call after the question whether the token is paused.
    ///
    /// # Errors
    ///
    /// The errors of `outcome`.
    pub fn read<E>(amount: Option<U256>, is_paused: bool, outcome: impl Fn(usize) -> Result<Option<String>, E>) -> Result<Self, E> {
        let payment = amount.map(|_| outcome(5)).transpose()?.map(|failed| failed.map_or(Ok(()), Err));
        Ok(Self { controls: [outcome(0)?, outcome(1)?], to_receiver: outcome(2)?, by_receiver: outcome(3)?, payment, is_paused })
    }

    /// Requires that the token lets the receiver be paid, and use what it gets: a token may be paused, or have frozen the receiver.
    ///
    /// # Errors
    ///
    /// [`Code::ReceiverNotPayable`] at `/destination`.
    pub fn check(&self) -> Result<(), Refusal> {
        let refuse = |reason: String| Err(Refusal::new(Code::ReceiverNotPayable, "/destination").with_reason(reason));
        match &self.payment {
            Some(Err(why)) => return refuse(format!("the token does not let the HTLC pay the receiver ({})", text::escape_untrusted(why))),
            // What it does counts, and not what it says.
            Some(Ok(())) => {}
            None if self.is_paused => return refuse("the token is paused, so nobody can be paid".to_owned()),
            None => {}
        }
        match self.to_receiver.as_ref().or(self.by_receiver.as_ref()) {
            Some(why) if self.controls.iter().any(Option::is_none) => {
                let why = text::escape_untrusted(why);
                refuse(format!("the token does not let the receiver be paid, or use the payment, so it may be frozen ({why})"))
            }
            _ => Ok(()),
        }
    }
}

/// The gas with which a native HTLC pays, on EVM and Tron: that of Solidity's `transfer`.
pub const PAYOUT_GAS: u64 = 2_300;

/// Refuses a receiver that is a contract and does not take coins with [`PAYOUT_GAS`].
///
/// The remedy is the receiver's own call, because its code and storage are then in use already and cost less to read.
#[must_use]
pub fn refuse_coins(why: &str) -> Refusal {
    let reason = format!(
        "the receiver is a contract that does not take coins with the {PAYOUT_GAS} gas that the HTLC gives it ({}), as a Safe or any other \
         proxy does not; pay to a key account, or have the contract itself call redeem or refund",
        text::escape_untrusted(why)
    );
    Refusal::new(Code::ReceiverNotPayable, "/destination").with_reason(reason)
}

/// Requires that a token shows the decimals of the registry.
///
/// # Errors
///
/// [`Code::DecimalsDiffer`] at `/token`; also if the token shows none.
pub fn check_decimals(pinned: u8, shown: Option<U256>) -> Result<(), Refusal> {
    let refusal = || Refusal::new(Code::DecimalsDiffer, "/token").with_expected(u64::from(pinned));
    match shown {
        Some(shown) if shown == U256::from(pinned) => Ok(()),
        Some(shown) => Err(refusal().with_actual(shown)),
        None => Err(refusal().with_reason("the token does not show its decimals")),
    }
}

/// Requires that simulated calls transfer nothing from the sender or the HTLC, except the expected transfer once, in this `token`. Returns
/// whether they make it.
///
/// # Errors
///
/// [`Code::SimulationDiffers`] at `/transfers`.
pub fn check_transfers<'a>(
    sender: Address,
    expected: Option<&Expected>,
    token: Option<Address>,
    transfers: impl IntoIterator<Item = &'a (Address, Transfer)>,
    codec: &AddressCodec,
) -> Result<bool, Refusal> {
    let mut is_made = false;
    for (asset, Transfer { from, to, amount }) in transfers {
        let is_expected =
            expected.is_some_and(|expected| token == Some(*asset) && (*from, *to, *amount) == (sender, expected.htlc, expected.amount));
        let is_own = *from == sender || expected.is_some_and(|expected| *from == expected.htlc);
        if is_expected && !is_made {
            is_made = true;
        } else if is_own && !amount.is_zero() {
            let [asset, from, to] = [*asset, *from, *to].map(codec.format);
            let moved = format!("{amount} of {asset} from {from} to {to}");
            return Err(Refusal::new(Code::SimulationDiffers, "/transfers").with_actual(moved));
        }
    }
    Ok(is_made)
}

#[cfg(test)]
mod tests {
    use countersign_core::Family;

    use super::*;

    const SENDER: Address = Address::repeat_byte(1);
    const HTLC: Address = Address::repeat_byte(2);
    const TOKEN: Address = Address::repeat_byte(3);

    fn expected() -> Expected {
        Expected { htlc: HTLC, amount: U256::from(5), is_native: false, approved: Some(TOKEN), approves: false }
    }

    const CODEC: AddressCodec = AddressCodec {
        family: Family::Evm,
        parse: |_, cursor| cursor.hex_array().map(Address::from),
        format: |address| address.to_string(),
    };

    fn transfer(asset: Address, from: Address, to: Address, amount: u64) -> (Address, Transfer) {
        (asset, Transfer { from, to, amount: U256::from(amount) })
    }

    #[test]
    fn the_sender_needs_the_approved_token_and_the_allowance() {
        assert_eq!(expected().check_token(TOKEN, &CODEC), Ok(()));
        assert_eq!(expected().check_token(HTLC, &CODEC).unwrap_err().location(), "/token");
        assert_eq!(Expected { approved: None, ..expected() }.check_token(HTLC, &CODEC), Ok(()));
        let check = |expected: Expected, has: u64, allowance: u64| {
            expected.check_funds(U256::from(has), U256::from(allowance)).map_err(|refusal| refusal.code())
        };
        assert_eq!(check(expected(), 5, 5), Ok(()));
        assert_eq!(check(expected(), 4, 5), Err(Code::InsufficientFunds));
        assert_eq!(check(expected(), 5, 4), Err(Code::AllowanceTooLow));
        assert_eq!(check(Expected { approves: true, ..expected() }, 5, 0), Ok(()));
    }

    #[test]
    fn only_an_answer_says_that_the_receiver_can_be_paid() {
        let (fails, check) = (|| Some("frozen".to_owned()), |seen: Payability| seen.check().map_err(|refusal| refusal.code()));
        let (refused, open) = (Err(Code::ReceiverNotPayable), Payability::default());
        assert_eq!(check(open.clone()), Ok(()));
        assert_eq!(check(Payability { to_receiver: fails(), ..open.clone() }), refused);
        assert_eq!(check(Payability { by_receiver: fails(), ..open.clone() }), refused);
        assert_eq!(check(Payability { is_paused: true, ..open.clone() }), refused);
        // A token that refuses empty transfers shows nothing, until the HTLC holds what it pays.
        let strict = Payability { controls: [fails(), fails()], to_receiver: fails(), by_receiver: fails(), ..open.clone() };
        assert_eq!(check(strict.clone()), Ok(()));
        assert_eq!(check(Payability { payment: Some(Err("paused".to_owned())), ..strict.clone() }), refused);
        assert_eq!(check(Payability { payment: Some(Ok(())), ..strict.clone() }), Ok(()));
        assert_eq!(check(Payability { payment: Some(Ok(())), by_receiver: fails(), ..open }), refused);
        // One that has frozen the HTLC refuses all of its transfers, and not those of others. One that serves only accounts that it knows
        // refuses strangers, and not the HTLC.
        for controls in [[None, fails()], [fails(), None]] {
            assert_eq!(check(Payability { controls, payment: None, ..strict.clone() }), refused);
        }
    }

    #[test]
    fn a_frozen_htlc_is_told_from_a_token_without_empty_transfers() {
        let fails = || Some("frozen".to_owned());
        let check = |by_htlc, by_others: [Option<String>; 2]| check_payout(by_htlc, &by_others).map_err(|refusal| refusal.code());
        let refused = Err(Code::SimulationReverted);
        assert_eq!(check(fails(), [None, None]), refused);
        assert_eq!(check(fails(), [None, fails()]), refused);
        assert_eq!(check(fails(), [fails(), None]), refused, "the sender is frozen, too");
        assert_eq!(check(fails(), [fails(), fails()]), Ok(()));
        assert_eq!(check(None, [fails(), fails()]), Ok(()));
    }

    #[test]
    fn a_token_has_the_decimals_of_the_registry() {
        assert_eq!(check_decimals(6, Some(U256::from(6))), Ok(()));
        for shown in [None, Some(U256::ZERO), Some(U256::from(18)), Some(U256::MAX)] {
            assert_eq!(check_decimals(6, shown).map_err(|refusal| refusal.code()), Err(Code::DecimalsDiffer), "{shown:?}");
        }
    }

    #[test]
    fn only_the_expected_transfer_is_made_and_only_once() {
        let check = |expected: Option<&Expected>, token, transfers: &[(Address, Transfer)]| {
            check_transfers(SENDER, expected, token, transfers, &CODEC).map_err(|refusal| refusal.location().to_owned())
        };
        let (expected, good, other) = (expected(), transfer(TOKEN, SENDER, HTLC, 5), Address::repeat_byte(4));
        let differs = Err("/transfers".to_owned());
        assert_eq!(check(Some(&expected), Some(TOKEN), &[]), Ok(false));
        assert_eq!(check(Some(&expected), Some(TOKEN), &[good]), Ok(true));
        assert_eq!(check(Some(&expected), Some(TOKEN), &[good, good]), differs);
        assert_eq!(check(Some(&expected), None, &[good]), differs);
        assert_eq!(check(None, Some(TOKEN), &[good]), differs);
        for moved in [
            transfer(other, SENDER, HTLC, 5),
            transfer(TOKEN, SENDER, other, 5),
            transfer(TOKEN, SENDER, HTLC, 4),
            transfer(TOKEN, HTLC, other, 1),
        ] {
            assert_eq!(check(Some(&expected), Some(TOKEN), &[moved]), differs, "{moved:?}");
        }
        // Others' transfers, and those of nothing, do not concern the sender.
        let foreign = [transfer(TOKEN, other, SENDER, 9), transfer(TOKEN, SENDER, other, 0), good];
        assert_eq!(check(Some(&expected), Some(TOKEN), &foreign), Ok(true));
    }
}
