// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Swap} from "./Swap.sol";

/// @title HTLC over the native coin.
/// @notice The calldata names the amount and the transaction carries it: both must say the same. There is no
/// `initiateWithSignature`, because a signature cannot pull the native coin from an account.
contract NativeHtlc is Swap {
    error ValueMismatch(uint256 value, uint256 amount);
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

    /// @notice The caller pays; the refund goes to `initiator`.
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
        if (msg.value != amount) revert ValueMismatch(msg.value, amount);
        orderId = _open(initiator, redeemer, timelock, amount, secretHash);
    }

    function _pay(address to, uint256 amount) internal override {
        (bool ok,) = to.call{value: amount}("");
        if (!ok) revert PaymentFailed(to);
    }
}
