// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title A contract that accepts coins, but not with 2,300 gas. It counts what it receives, as wallets behind a
/// proxy do.
contract Vault {
    uint256 public received;

    receive() external payable {
        received += msg.value;
    }
}
