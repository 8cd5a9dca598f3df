// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Swap} from "./Swap.sol";

/// @dev Two slots before those of `Swap`.
abstract contract TwoSlots {
    uint256[2] private _reservedBefore;
}

/// @title HTLC over one ERC-20 token.
contract Htlc is TwoSlots, Swap {
    error HTLC__DuplicateOrder();
    error HTLC__OrderNotInitiated();
    error HTLC__OrderFulfilled();
    error HTLC__IncorrectSecret();
    error HTLC__OrderNotExpired();
    error HTLC__ZeroAddressInitiator();
    error HTLC__ZeroAddressRedeemer();
    error HTLC__ZeroAmount();
    error HTLC__ZeroTimelock();
    /// The signature does not recover to the initiator, is not 65 bytes, has a high `s`, or a `v` other than 27 and 28.
    error HTLC__InvalidInitiatorSignature();
    error ZeroAddressToken();
    /// The token refused, returned false, or has no code.
    error TokenCallFailed();

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 public constant INITIATE_TYPEHASH =
        keccak256("Initiate(address redeemer,uint256 timelock,uint256 amount,bytes32 secretHash)");
    /// Half the order of secp256k1, rounded down. For each larger `s`, a smaller one signs the same message.
    uint256 private constant HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    address public immutable token;
    string public version;

    constructor(address token_, string memory version_) {
        if (token_ == address(0)) revert ZeroAddressToken();
        token = token_;
        version = version_;
    }

    function initiate(address redeemer, uint256 timelock, uint256 amount, bytes32 secretHash) external {
        _initiate(msg.sender, msg.sender, redeemer, timelock, amount, secretHash);
    }

    function initiate(
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash,
        bytes calldata destinationData
    ) external {
        bytes32 orderId = _initiate(msg.sender, msg.sender, redeemer, timelock, amount, secretHash);
        emit InitiatedWithData(orderId, secretHash, amount, destinationData);
    }

    /// @notice The caller pays. The refund goes to `initiator`.
    function initiateOnBehalf(
        address initiator,
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash
    ) external {
        _initiate(msg.sender, initiator, redeemer, timelock, amount, secretHash);
    }

    function initiateOnBehalf(
        address initiator,
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash,
        bytes calldata destinationData
    ) external {
        bytes32 orderId = _initiate(msg.sender, initiator, redeemer, timelock, amount, secretHash);
        emit InitiatedWithData(orderId, secretHash, amount, destinationData);
    }

    /// @notice `initiator` pays with a signature that anyone may submit. The signed message has no nonce. A replay
    /// fails because an order id can only be opened once.
    function initiateWithSignature(
        address initiator,
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash,
        bytes calldata signature
    ) external {
        bytes32 structHash = keccak256(abi.encode(INITIATE_TYPEHASH, redeemer, timelock, amount, secretHash));
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", domainSeparator(), structHash));
        _requireSigner(initiator, digest, signature);
        _initiate(initiator, initiator, redeemer, timelock, amount, secretHash);
    }

    /// @notice The EIP-712 domain separator: name "HTLC", the version given at deployment, this chain, this contract.
    function domainSeparator() public view returns (bytes32) {
        return keccak256(
            abi.encode(DOMAIN_TYPEHASH, keccak256("HTLC"), keccak256(bytes(version)), block.chainid, address(this))
        );
    }

    /// @notice The fields of the domain (ERC-5267). The bits of `fields` say which of them are used: the first four.
    function eip712Domain()
        external
        view
        returns (
            bytes1 fields,
            string memory name,
            string memory version_,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        return (hex"0f", "HTLC", version, block.chainid, address(this), bytes32(0), new uint256[](0));
    }

    function _initiate(
        address payer,
        address initiator,
        address redeemer,
        uint256 timelock,
        uint256 amount,
        bytes32 secretHash
    ) private returns (bytes32 orderId) {
        orderId = _open(initiator, redeemer, timelock, amount, secretHash);
        _callToken(abi.encodeWithSignature("transferFrom(address,address,uint256)", payer, address(this), amount));
    }

    function _pay(address to, uint256 amount) internal override {
        _callToken(abi.encodeWithSignature("transfer(address,uint256)", to, amount));
    }

    function _fail(Fault fault) internal pure override {
        if (fault == Fault.DuplicateOrder) revert HTLC__DuplicateOrder();
        if (fault == Fault.OrderNotInitiated) revert HTLC__OrderNotInitiated();
        if (fault == Fault.OrderFulfilled) revert HTLC__OrderFulfilled();
        if (fault == Fault.IncorrectSecret) revert HTLC__IncorrectSecret();
        if (fault == Fault.OrderNotExpired) revert HTLC__OrderNotExpired();
        if (fault == Fault.ZeroAddressInitiator) revert HTLC__ZeroAddressInitiator();
        if (fault == Fault.ZeroAddressRedeemer) revert HTLC__ZeroAddressRedeemer();
        if (fault == Fault.ZeroAmount) revert HTLC__ZeroAmount();
        revert HTLC__ZeroTimelock();
    }

    /// @dev Accepts a token that returns true and one that returns nothing. The token's own revert data is passed on.
    function _callToken(bytes memory data) private {
        if (token.code.length == 0) revert TokenCallFailed();
        (bool ok, bytes memory answer) = token.call(data);
        if (!ok) {
            if (answer.length == 0) revert TokenCallFailed();
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        if (answer.length != 0 && (answer.length != 32 || abi.decode(answer, (uint256)) != 1)) revert TokenCallFailed();
    }

    function _requireSigner(address initiator, bytes32 digest, bytes calldata signature) private pure {
        if (signature.length != 65) revert HTLC__InvalidInitiatorSignature();
        bytes32 r = bytes32(signature[:32]);
        bytes32 s = bytes32(signature[32:64]);
        uint8 v = uint8(signature[64]);
        if (uint256(s) > HALF_ORDER || (v != 27 && v != 28)) revert HTLC__InvalidInitiatorSignature();
        address signer = ecrecover(digest, v, r, s);
        // ecrecover answers zero for a bad signature, so a zero initiator must not be allowed to match it.
        if (signer == address(0) || signer != initiator) revert HTLC__InvalidInitiatorSignature();
    }
}
