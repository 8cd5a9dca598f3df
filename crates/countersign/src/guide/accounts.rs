//! Accounts with code: what to call for them, what is then proven, and what nobody can prove.
//!
//! The owner of an order may be an account whose code decides what it does: a Safe, a smart account of ERC-4337, a key's account that is
//! delegated (EIP-7702), a contract with several owners on Tron, the vault of a multisig on Solana. Such an account has no key, or its key is not
//! the last word. So nothing that it signs can be proven off line, and what it sends is in a transaction of somebody else.
//!
//! It pays in one of two ways:
//!
//! | way | what it gives | what is proven, and when |
//! |---|---|---|
//! | by its own calls, in a transaction of its owners, a bundler or a relay | a receipt: see [by its effect](#by-its-effect) | afterwards, that this order was paid, with all terms |
//! | by a signature of the message, where the order has a gasless path (EVM) | bytes: see [by a signature](#by-a-signature) | nothing off line; with a connection, that the account accepts the bytes at that moment |
//!
//! # By its effect
//!
//! The account gets the calls of the order, and sends them in whatever form it has. What comes back is not the order's transaction, so
//! [`matches`](crate::VerifiedOrder::matches) refuses it by name. `find_payment` of the deposit looks at what it did:
//!
//! | family | the account gets (`deposit()`) | what a node returned for | read by `received` |
//! |---|---|---|---|
//! | EVM | `send_transactions` (each [`without_gas`](crate::evm::external::SendTransaction::without_gas) for a Safe), or `send_calls` | `eth_getTransactionReceipt`, or the wallet's own `wallet_getCallsStatus` | `receipt`, `calls_status` |
//! | Tron | `calls` | `/wallet/gettransactioninfobyid` | `transaction_info` |
//! | Starknet | `execute_calls`, for a paymaster | `starknet_getTransactionReceipt` | `receipt` |
//! | Solana | the instruction of `transaction` | `getTransaction`, also with version 0 or 1 and lookup tables | `effect` |
//!
//! | proven | how |
//! |---|---|
//! | the transaction took effect | its status; an answer without one is refused |
//! | the pinned contract was paid, and nobody else | the contract's own event; on Solana the program's instruction |
//! | initiator, redeemer, timelock, secret hash, amount | EVM, Tron, Starknet: the swap id in the event is a hash of all of them; Solana: the arguments and accounts of the instruction |
//! | destination data | EVM, Tron: the event `InitiatedWithDestinationData` beside the other; Starknet: the same event in place of the other; Solana: the arguments. Empty data need not be shown if the order has a gasless message, which takes none |
//! | it was paid once | a second payment of this secret hash in the transaction is refused |
//!
//! | not proven | who can tell |
//! |---|---|
//! | that the answer is true: it is bound to nothing | the number of endpoints that must agree: `Nodes::find_payment` of `countersign-node`, `countersign match --id` |
//! | that the payment is final, and not redeemed or refunded since | the reader of the source leg: [`swaps`](crate::guide::swaps) |
//! | what else the transaction did, such as another approval | the wallet that made it |
//! | who of the account's owners agreed | the account's code |
//!
//! Where the swap id does not commit to all terms (contracts of EVM and Tron with formula v1, the `old` native contract, generations of Starknet
//! other than `2025_11`), the event proves nothing and is refused; on Sui no such text is taken. A gasless payment on Tron does not show
//! destination data that is not empty, because the signed message leaves it out, and is refused too. There the reader of the source leg shows the
//! payment, whoever sent it. No state of a contract has destination data, so the reader does not prove it.
//! A log line of Solana is never read: any program can write one.
//!
#![cfg_attr(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana"), doc = "```")]
#![cfg_attr(not(all(feature = "evm", feature = "tron", feature = "starknet", feature = "solana")), doc = "```ignore")]
//! use countersign::{Code, Refusal, Verified, evm, solana, starknet, tron};
//!
//! /// Returns the id of the transaction in which an account with code paid. `effect` is what
//! /// a node returned for it.
//! fn paid(order: &Verified, effect: &[u8]) -> Result<String, Refusal> {
//!     match order {
//!         Verified::Evm(order) => order
//!             .deposit()
//!             .find_payment(&evm::received::receipt(effect)?)
//!             .map(|hash| hash.to_string()),
//!         Verified::Tron(order) => order
//!             .deposit()
//!             .find_payment(&tron::received::transaction_info(effect)?)
//!             .map(|id| id.to_string()),
//!         Verified::Starknet(order) => order
//!             .deposit()
//!             .find_payment(&starknet::received::receipt(effect)?)
//!             .map(|hash| hash.to_string()),
//!         Verified::Solana(order) => order
//!             .deposit()
//!             .find_payment(&solana::received::effect(effect)?)
//!             .map(|id| id.to_string()),
//!         other => {
//!             Err(Refusal::new(Code::UnsupportedFamily, "").with_actual(other.family()))
//!         }
//!     }
//! }
//! ```
//!
//! # By a signature
//!
//! On EVM the contract recovers a key from the signature of an owner without code. It asks an owner with code by `isValidSignature` (ERC-1271).
//! [`ExternalSignature::contract`](crate::evm::ExternalSignature::contract) takes the account's bytes for the message, and for nothing else:
//! no chain takes them for a transaction.
//!
//! | the account returns | what happens |
//! |---|---|
//! | any bytes, up to 64 KiB | attached with the warning `contract_signature_unverified`: they are not looked at |
//! | no bytes: a Safe that signs on chain | the same |
//! | bytes in the wrapper of ERC-6492 | the wrapper is taken off where the account has code, which a connection shows ([`OwnerPath::with_code`](crate::evm::OwnerPath::with_code)) or the caller states ([`ExternalSignature::deployed_contract`](crate::evm::ExternalSignature::deployed_contract)). Otherwise `account_not_deployed`: the contract cannot deploy the account, and nobody runs its factory |
//! | the nested message of ERC-7739 | attached as any other bytes. Only the account's code unpacks it, so that no code here tells it from another signature |
//! | a signature of the owner's key, where the key's account is delegated (EIP-7702) | proven to be of the key, as without code. It counts only if the delegate's code accepts it, which the summary says |
//!
//! Off line, nobody can prove that the account accepts the bytes. With a connection the account itself is asked, in the contract's name and with
//! these bytes, at a quorum of the endpoints: `Nodes::check_signed`, which the driver calls before it submits anything. A no is
//! `contract_signature_refused` or, without code, `account_not_deployed`. Then `Nodes::prepare_own` prepares the account's own transactions,
//! which cost gas. Even a yes holds for that block alone: the owners may change before the contract asks.
//!
//! On Tron the message is signed by the owner's key alone, and a contract's signature is refused. On Solana an account that a program
//! controls cannot sign, so its orders are paid by its own calls. On Starknet every account has code: a signature is proven against
//! the public key that the wallet names, and only the account can tell whether that key counts.
//!
//! # By kind of account
//!
//! | account | pays by | note |
//! |---|---|---|
//! | Safe | calls that an owner executes, or a signature (`SafeMessage`) | what its owners compare on their devices: `countersign_view::hashes::Safe`. A Safe's answer to a call is the hash of its own transaction, which no node knows: take the receipt of the one that executed it |
//! | ERC-4337 | a user operation, or a signature | the account must be the order's owner, because the contract takes the funds of whoever calls it. The bundler's receipt names the transaction |
//! | key with a delegate (EIP-7702) | its own transactions, a bundle of a relay, or a signature | a transaction that delegates while it pays (type 4) is refused when it is matched, and its receipt shows the payment |
//! | not deployed yet (ERC-6492) | its calls, in the transaction that deploys it | the contract takes no signature of it before |
//! | contract with several owners on Tron | calls in a transaction of one of them | not to be confused with permissions, under which a key's account has several keys: these sign the order's own transactions |
//! | vault of a multisig on Solana (Squads), smart wallet | an instruction that its program calls | another account may pay the rent: it is the sponsor of the swap, and gets the rent back |
//!
//! In JavaScript, `countersign/contract-wallet` has `signByContract`, `safeCalls` and `sendUserOperation`. `findPayment` and `find_payment` of
//! every language take the same texts as the functions above: `docs/spec/batch.md#bundled-calls`.
//!
//! Specification: `docs/spec/evm.md#signing`, `docs/spec/tron.md#proof-by-effect`, `docs/spec/starknet.md#proof-by-effect`,
//! `docs/spec/solana.md#proof-by-effect`.
