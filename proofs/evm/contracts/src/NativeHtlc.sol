// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Swap} from "./Swap.sol";

/// @title HTLC over the native coin.
/// @notice The transaction must carry the amount that the calldata names. There is no `initiateWithSignature`,
/// because a signature cannot pull the native coin from an account.
contract NativeHtlc is Swap {
    error NativeHTLC__DuplicateOrder();
    error NativeHTLC__OrderNotInitiated();
    error NativeHTLC__OrderFulfilled();
    error NativeHTLC__IncorrectSecret();
    error NativeHTLC__OrderNotExpired();
    error NativeHTLC__ZeroAddressInitiator();
    error NativeHTLC__ZeroAddressRedeemer();
    error NativeHTLC__ZeroAmount();
    error NativeHTLC__ZeroTimelock();
    /// The value differs from the amount. The name is misspelt in the interface too.
    error NativeHTLC__IncorrectFundsRecieved();
    error PaymentFailed(address to);

    /// The address that ERC-7528 gives to the native coin.
    address public constant token = 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE;

    function initiate(address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash) external payable {
        _initiate(msg.sender, redeemer, timelock, amount, secretHash);
    }

    function initiate(
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash,
        bytes calldata destinationData
    ) external payable {
        bytes32 orderId = _initiate(msg.sender, redeemer, timelock, amount, secretHash);
        emit InitiatedWithData(orderId, secretHash, amount, destinationData);
    }

    /// @notice The caller pays. The refund goes to `initiator`.
    function initiateOnBehalf(
        address initiator,
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash
    ) external payable {
        _initiate(initiator, redeemer, timelock, amount, secretHash);
    }

    function initiateOnBehalf(
        address initiator,
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash,
        bytes calldata destinationData
    ) external payable {
        bytes32 orderId = _initiate(initiator, redeemer, timelock, amount, secretHash);
        emit InitiatedWithData(orderId, secretHash, amount, destinationData);
    }

    function _initiate(
        address initiator,
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash
    ) private returns (bytes32 orderId) {
        if (msg.value != amount) revert NativeHTLC__IncorrectFundsRecieved();
        orderId = _open(initiator, redeemer, timelock, amount, secretHash);
    }

    function _pay(address to, uint256 amount) internal override {
        (bool ok,) = to.call{value: amount}("");
        if (!ok) revert PaymentFailed(to);
    }

    function _fail(Fault fault) internal pure override {
        if (fault == Fault.DuplicateOrder) revert NativeHTLC__DuplicateOrder();
        if (fault == Fault.OrderNotInitiated) revert NativeHTLC__OrderNotInitiated();
        if (fault == Fault.OrderFulfilled) revert NativeHTLC__OrderFulfilled();
        if (fault == Fault.IncorrectSecret) revert NativeHTLC__IncorrectSecret();
        if (fault == Fault.OrderNotExpired) revert NativeHTLC__OrderNotExpired();
        if (fault == Fault.ZeroAddressInitiator) revert NativeHTLC__ZeroAddressInitiator();
        if (fault == Fault.ZeroAddressRedeemer) revert NativeHTLC__ZeroAddressRedeemer();
        if (fault == Fault.ZeroAmount) revert NativeHTLC__ZeroAmount();
        revert NativeHTLC__ZeroTimelock();
    }
}
