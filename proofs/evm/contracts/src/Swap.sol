// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title The parts that the token HTLC and the native HTLC share: records, ids, redemption and refund.
/// @notice A subclass collects the funds before or after `_open`, and pays them out in `_pay`.
abstract contract Swap {
    /// Reasons for both contracts to revert. Each contract has its own errors, whose names begin with its prefix.
    enum Fault {
        /// The same terms are already recorded, whether open or closed. An id can only be used once.
        DuplicateOrder,
        OrderNotInitiated,
        /// The order was redeemed or refunded before.
        OrderFulfilled,
        IncorrectSecret,
        /// The refund opens in the block after `initiatedAt + timelock`.
        OrderNotExpired,
        ZeroAddressInitiator,
        ZeroAddressRedeemer,
        ZeroAmount,
        ZeroTimelock
    }

    error ZeroSecretHash();

    event Initiated(bytes32 indexed orderId, bytes32 indexed secretHash, uint256 indexed amount);
    event InitiatedWithData(bytes32 indexed orderId, bytes32 indexed secretHash, uint256 amount, bytes destinationData);
    event Redeemed(bytes32 indexed orderId, bytes32 indexed secretHash, bytes secret);
    event Refunded(bytes32 indexed orderId);

    /// Blocks and amounts as given; `fulfilledAt` is zero while the funds are held. The secret hash is part of the id only.
    struct Order {
        address initiator;
        address redeemer;
        uint256 initiatedAt;
        uint256 timelock;
        uint256 amount;
        uint256 fulfilledAt;
    }

    /// Places the records where version 3 has them: at slot 2 here, and at slot 4 if a subclass has two slots before
    /// them.
    uint256[2] private _reserved;

    mapping(bytes32 orderId => Order) public orders;

    /// @notice Pays the redeemer. Anyone may call it, because the secret is the permission and the payee is fixed.
    function redeem(bytes32 orderId, bytes calldata secret) external {
        Order storage order = _held(orderId);
        bytes32 secretHash = sha256(secret);
        bytes32 id = _id(order.initiator, order.redeemer, order.timelock, order.amount, secretHash);
        if (id != orderId) _fail(Fault.IncorrectSecret);
        order.fulfilledAt = block.number;
        emit Redeemed(orderId, secretHash, secret);
        _pay(order.redeemer, order.amount);
    }

    /// @notice Pays the initiator back once `initiatedAt + timelock < block.number`. Anyone may call it.
    function refund(bytes32 orderId) external {
        Order storage order = _held(orderId);
        if (order.initiatedAt + order.timelock >= block.number) _fail(Fault.OrderNotExpired);
        order.fulfilledAt = block.number;
        emit Refunded(orderId);
        _pay(order.initiator, order.amount);
    }

    /// @dev Writes the record. Moves no funds.
    function _open(address initiator, address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash)
        internal
        returns (bytes32 orderId)
    {
        if (initiator == address(0)) _fail(Fault.ZeroAddressInitiator);
        if (redeemer == address(0)) _fail(Fault.ZeroAddressRedeemer);
        if (timelock == 0) _fail(Fault.ZeroTimelock);
        if (amount == 0) _fail(Fault.ZeroAmount);
        if (secretHash == bytes32(0)) revert ZeroSecretHash();

        orderId = _id(initiator, redeemer, timelock, amount, secretHash);
        if (orders[orderId].timelock != 0) _fail(Fault.DuplicateOrder);
        orders[orderId] = Order({
            initiator: initiator,
            redeemer: redeemer,
            initiatedAt: block.number,
            timelock: timelock,
            amount: amount,
            fulfilledAt: 0
        });
        emit Initiated(orderId, secretHash, amount);
    }

    /// @dev The id of these terms in this contract.
    function _id(address initiator, address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash)
        private
        view
        returns (bytes32)
    {
        return sha256(abi.encode(block.chainid, secretHash, initiator, redeemer, timelock, amount, address(this)));
    }

    /// @dev The record of an order whose funds are still in this contract.
    function _held(bytes32 orderId) private view returns (Order storage order) {
        order = orders[orderId];
        if (order.timelock == 0) _fail(Fault.OrderNotInitiated);
        if (order.fulfilledAt != 0) _fail(Fault.OrderFulfilled);
    }

    /// @dev Sends `amount` out of this contract. Called last, after the record is closed.
    function _pay(address to, uint256 amount) internal virtual;

    /// @dev Reverts with the subclass's error for `fault`.
    function _fail(Fault fault) internal pure virtual;
}
