//! The functions, events and errors of the contracts in `contracts/src`, as Rust types.
//!
//! They are written by hand, so that a test reads like the Solidity interface. `tests/harness` compares them with the
//! compiled artefacts. Overloads are numbered in the order of their declaration: `initiate_0Call` has no destination
//! data, and `initiate_1Call` has.

use alloy_sol_types::sol;

sol! {
    /// Both test tokens. `approve` of `StubbornToken` returns nothing, and that of `Token` returns true.
    #[derive(Debug, PartialEq, Eq)]
    interface Erc20 {
        error AllowanceNotZero(address spender, uint256 allowance);
        error InsufficientBalance(address owner, uint256 balance, uint256 needed);
        error InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
        error ZeroAddress();

        event Transfer(address indexed from, address indexed to, uint256 value);
        event Approval(address indexed owner, address indexed spender, uint256 value);

        function mint(address to, uint256 value) external;
        function approve(address spender, uint256 value) external;
        function balanceOf(address owner) external view returns (uint256);
        function allowance(address owner, address spender) external view returns (uint256);
        function totalSupply() external view returns (uint256);
        function decimals() external view returns (uint8);
    }

    /// The functions that only a token with an issuer has.
    #[derive(Debug, PartialEq, Eq)]
    interface Regulated {
        error Frozen(address account);
        error Paused();

        function pause() external;
        function freeze(address account) external;
        function paused() external view returns (bool);
        function isFrozen(address account) external view returns (bool);
    }

    /// The token HTLC, and the parts of the native HTLC that are the same.
    #[derive(Debug, PartialEq, Eq)]
    interface Htlc {
        error HTLC__DuplicateOrder();
        error HTLC__OrderNotInitiated();
        error HTLC__OrderFulfilled();
        error HTLC__IncorrectSecret();
        error HTLC__OrderNotExpired();
        error HTLC__ZeroAddressInitiator();
        error HTLC__ZeroAddressRedeemer();
        error HTLC__ZeroAmount();
        error HTLC__ZeroTimelock();
        error HTLC__InvalidInitiatorSignature();
        error ZeroSecretHash();
        error ZeroAddressToken();
        error TokenCallFailed();

        event Initiated(bytes32 indexed orderId, bytes32 indexed secretHash, uint256 indexed amount);
        event InitiatedWithData(bytes32 indexed orderId, bytes32 indexed secretHash, uint256 amount, bytes destinationData);
        event Redeemed(bytes32 indexed orderId, bytes32 indexed secretHash, bytes secret);
        event Refunded(bytes32 indexed orderId);

        function initiate(address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash) external payable;
        function initiate(address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash, bytes destinationData) external payable;
        function initiateOnBehalf(address initiator, address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash) external payable;
        function initiateOnBehalf(address initiator, address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash, bytes destinationData) external payable;
        function initiateWithSignature(address initiator, address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash, bytes signature) external;
        function redeem(bytes32 orderId, bytes secret) external;
        function refund(bytes32 orderId) external;

        function orders(bytes32 orderId) external view returns (address initiator, address redeemer, uint256 initiatedAt, uint256 timelock, uint256 amount, uint256 fulfilledAt);
        function token() external view returns (address);
        function version() external view returns (string);
        function domainSeparator() external view returns (bytes32);
        function INITIATE_TYPEHASH() external view returns (bytes32);
        function eip712Domain() external view returns (bytes1 fields, string name, string version_, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions);
    }

    /// The parts that only the native HTLC has.
    #[derive(Debug, PartialEq, Eq)]
    interface NativeHtlc {
        error NativeHTLC__DuplicateOrder();
        error NativeHTLC__OrderNotInitiated();
        error NativeHTLC__OrderFulfilled();
        error NativeHTLC__IncorrectSecret();
        error NativeHTLC__OrderNotExpired();
        error NativeHTLC__ZeroAddressInitiator();
        error NativeHTLC__ZeroAddressRedeemer();
        error NativeHTLC__ZeroAmount();
        error NativeHTLC__ZeroTimelock();
        error NativeHTLC__IncorrectFundsRecieved();
        error PaymentFailed(address to);
    }
}

/// A swap in the contract's records: the result of `orders(bytes32)`, which is all zero for an unknown id.
pub type Order = Htlc::ordersReturn;
