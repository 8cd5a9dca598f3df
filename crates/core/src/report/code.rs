//! The codes of refusals and warnings. They are part of the API: wallets branch on them and translate them.

use std::fmt;

use super::{Blame, Severity};

/// Makes the codes from lines of `Variant = "name", "meaning", "remedy";`. `service` stands before a remedy that is to report the service.
macro_rules! codes {
    (@is_for_service) => { false };
    (@is_for_service service) => { true };
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $meaning:literal, $($mark:ident)? $remedy:literal;)*) => {
        /// The code of a refusal or a warning. The list is flat, and [`Code::name`] never changes once released.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $meaning] #[doc = ""] #[doc = concat!("`", $name, "`: ", $remedy, ".")] $(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the stable name, in snake case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns what is wrong, or what the warning is about.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// Returns what to do about it.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }

            /// Returns whether the remedy is to report the service.
            pub(crate) const fn is_for_service(self) -> bool {
                match self { $(Self::$variant => codes!(@is_for_service $($mark)?),)* }
            }
        }
    };
}

codes! {
    // ---- JSON and spelling
    JsonSyntax = "json_syntax", "not valid JSON", service "request it again; report the service if it happens again";
    JsonNotUtf8 = "json_not_utf8", "the text is not UTF-8", service "request it again; report the service if it happens again";
    JsonDuplicateKey = "json_duplicate_key", "duplicate key in object: parsers would disagree on its value", service "do not sign; report the service";
    JsonTooDeep = "json_too_deep", "the JSON is nested deeper than any response of the service", service "do not sign; report the service";
    JsonTooLarge = "json_too_large", "the JSON is larger than any response of the service", service "do not sign; report the service";
    MissingField = "missing_field", "a required field is missing or null", "add the field";
    UnexpectedField = "unexpected_field", "unknown field in something that is signed", "do not sign; update this library if the service has changed";
    MisspeltField = "misspelt_field", "the name of a field is nearly that of a known one, so it would be ignored", "write the name exactly as expected";
    WrongType = "wrong_type", "the field has the wrong JSON type, or a value that is not one of its choices", "correct the field";
    TextNotPlain = "text_not_plain", "the text is empty, too long, or not printable ASCII", service "do not sign; report the service";
    DecimalEmpty = "decimal_empty", "a decimal number is empty", "write it as digits only";
    DecimalSign = "decimal_sign", "a decimal number has a sign", "write it as digits only";
    DecimalExponent = "decimal_exponent", "a decimal number has an exponent", "write it as digits only";
    DecimalFraction = "decimal_fraction", "a decimal number has a decimal point; amounts are whole base units", "convert it to base units first";
    DecimalSpace = "decimal_space", "a decimal number contains white space", "write it as digits only";
    DecimalHex = "decimal_hex", "a decimal number is written in hex", "write it as decimal digits";
    DecimalLeadingZero = "decimal_leading_zero", "a decimal number has a leading zero", "write it without leading zeros";
    DecimalDigit = "decimal_digit", "invalid decimal digit", "write it as digits only";
    NumberTooLarge = "number_too_large", "the number does not fit its type", "check the unit of the number";
    IntegerNotExact = "integer_not_exact", "a JSON number is not written as a plain integer", "write it without decimal point, exponent or minus sign";
    HexPrefix = "hex_prefix", "hex digits lack the prefix 0x", "write 0x in front";
    HexEmpty = "hex_empty", "a hex number has no digits", "write 0x0 for zero";
    HexDigit = "hex_digit", "invalid hex digit", "check where the text was copied from";
    HexOddLength = "hex_odd_length", "hex bytes have an odd number of digits", "check whether the text was cut off";
    HexLength = "hex_length", "hex bytes have the wrong length", "check whether the text was cut off";

    // ---- the request
    AssetIdMalformed = "asset_id_malformed", "the asset id does not have the form chain:symbol in lower case", "take it from the service's list of assets";
    AddressMalformed = "address_malformed", "not a valid address on this chain", "check where it was copied from";
    AddressChecksum = "address_checksum", "the checksum of the address is wrong", "check every character; do not sign";
    AddressNetwork = "address_network", "the address belongs to another chain or network", "use an address on the asset's own chain";
    AmountZero = "amount_zero", "the amount is zero", "request at least one base unit";
    SameAsset = "same_asset", "source and destination are the same asset", "choose two assets";
    MixedNetworks = "mixed_networks", "a main network is paired with a test network", "choose two assets on the same kind of network";
    DelegateNotSupported = "delegate_not_supported", "this chain family has no delegates", "leave the delegate out";
    PayoutInvalid = "payout_invalid", "the payout would go to the HTLC, a token contract or a solver", "do not sign; name an address or key of your own";

    // ---- the registry
    RegistryMalformed = "registry_malformed", "the registry contradicts itself or is incomplete", "pin it again and review the differences";
    UnknownGeneration = "unknown_generation", "the chain's family has no contract of this generation", "write a generation that this library knows, or leave the member out";
    UnknownChain = "unknown_chain", "the chain is neither pinned nor known", "pin it if you trust it";
    UnknownAsset = "unknown_asset", "the asset is not pinned", "pin it if you trust it";
    UnsupportedFamily = "unsupported_family", "this build has no code for the chain's family", "build with the feature of that family";

    // ---- the envelope
    ServiceError = "service_error", "the service returned an error", "read the text of the error and try again";
    StatusNotOk = "status_not_ok", "the status of the response is not Ok", service "try again; report the service if it happens again";
    ErrorBesideOk = "error_beside_ok", "the response has both the status Ok and an error", service "do not sign; report the service";
    OrderIdMalformed = "order_id_malformed", "the order id is not 64 hex digits", service "do not sign; report the service";
    MixedFamilies = "mixed_families", "the response carries the payload of another chain family", service "do not sign; report the service";
    LegacyKeyBeside = "legacy_key_beside", "the response has both initiate_transaction and its older name, transaction", service "do not sign; report the service";

    // ---- the payload against the terms
    ChainMismatch = "chain_mismatch", "the payload is for a chain other than the asset's", service "do not sign; report the service";
    UnknownContract = "unknown_contract", "the payload calls a contract other than the pinned HTLC", "do not sign; if the service moved, pin again and review the differences";
    UnknownToken = "unknown_token", "the approval is for a token other than the pinned one", service "do not sign; report the service";
    UnknownSpender = "unknown_spender", "the approval is for a spender other than the pinned HTLC", service "do not sign; report the service";
    GenerationMismatch = "generation_mismatch", "the payload is for a contract of another generation than the pinned one", "do not sign; if the contract is of that generation, pin it as `generation` of the asset's HTLC";
    UnexpectedSelector = "unexpected_selector", "the call is not the function that this order needs", service "do not sign; report the service";
    CalldataLength = "calldata_length", "the calldata has the wrong length for its arguments", service "do not sign; report the service";
    CalldataPadding = "calldata_padding", "a padding byte of the calldata is not zero", service "do not sign; report the service";
    CalldataOffset = "calldata_offset", "an offset or length in the calldata is not canonical", service "do not sign; report the service";
    AmountMismatch = "amount_mismatch", "the amount is not the requested one", service "do not sign; report the service";
    ValueMismatch = "value_mismatch", "the coins sent with the call are not what the order needs", service "do not sign; report the service";
    InitiatorMismatch = "initiator_mismatch", "refunds would go to an account other than the owner", service "do not sign; report the service";
    RedeemerInvalid = "redeemer_invalid", "the redeemer is an account that no solver can have", service "do not sign; report the service";
    UnknownRedeemer = "unknown_redeemer", "the redeemer is not a pinned solver of this chain", "do not sign; if the solver is new, pin it first";
    SecretHashMismatch = "secret_hash_mismatch", "the secret hash is not the requested one", service "do not sign; report the service";
    SecretHashTrivial = "secret_hash_trivial", "the secret of this hash can be guessed", service "do not sign; report the service";
    TimelockZero = "timelock_zero", "the timelock is zero", service "do not sign; report the service";
    TimelockTooLong = "timelock_too_long", "the timelock is longer than the policy allows", "do not sign, or raise the limit of the policy deliberately";
    GasLimitTooLow = "gas_limit_too_low", "the gas limit is below what any such transaction costs", service "do not sign; report the service";
    GasLimitTooHigh = "gas_limit_too_high", "the gas or fee limit is above the policy's", "do not sign, or raise the limit of the policy deliberately";
    UnexpectedApproval = "unexpected_approval", "a native asset needs no approval", service "do not sign; report the service";
    ApprovalBelowAmount = "approval_below_amount", "the approval does not cover the amount", service "do not sign; report the service";
    ApprovalNotExact = "approval_not_exact", "the policy requires an approval of exactly the amount", "rewrite the approval to the exact amount, or change the policy deliberately";
    DestinationDataTooLong = "destination_data_too_long", "the destination data is longer than 1 KiB", service "do not sign; report the service";
    TypedDataPrimaryType = "typed_data_primary_type", "the typed data is not an Initiate message", service "do not sign; report the service";
    TypedDataTypes = "typed_data_types", "the typed data declares types other than those that the contract hashes", service "do not sign; report the service";
    TypedDataDomain = "typed_data_domain", "the domain of the typed data is not the contract's", service "do not sign; report the service";
    TypedDataWithDelegate = "typed_data_with_delegate", "an order with a delegate has no gasless funding path", service "do not sign; report the service";
    PayloadsDisagree = "payloads_disagree", "the transaction and the typed data disagree", service "do not sign; report the service";

    // ---- the order record
    RecordMismatch = "record_mismatch", "the order record contradicts the request or the payload", service "do not sign; report the service";
    RecordVersion = "record_version", "the version of the order is unknown", "update this library before signing";
    RecordSwapId = "record_swap_id", "the swap id does not follow from the record", service "do not sign; report the service";
    RecordPaysLess = "record_pays_less", "the order pays out less than requested", "do not sign; ask for a new quote";
    PaysTooLittle = "pays_too_little", "the order pays out less than the minimum that you accept", "do not sign; ask for a new quote";
    RecordPaysElsewhere = "record_pays_elsewhere", "the order pays out to another party", service "do not sign; report the service";
    RecordOutlastsSource = "record_outlasts_source", "the destination's timelock is not shorter than the source's: one party could take both legs", service "do not sign; report the service";
    RecordSolver = "record_solver", "the two legs do not belong to one pinned solver", service "do not sign; report the service";
    RecordFunded = "record_funded", "the source leg is already funded", "track the order instead of paying twice";
    RecordRedeemed = "record_redeemed", "the swap is already redeemed", "track the order instead of paying twice";
    RecordRefunded = "record_refunded", "the swap is already refunded", "create a new order";
    RecordChanged = "record_changed", "a later order record has other terms than the one that was verified", service "do not release the secret; report the service";
    RecordSecretKnown = "record_secret_known", "the secret is already public: whoever knows it can redeem", "do not fund the order; create a new one";
    TimeMalformed = "time_malformed", "a time is neither RFC 3339 nor Unix seconds", service "do not rely on this record; report the service";
    TransactionIdMalformed = "transaction_id_malformed", "not a transaction id of this chain", service "do not rely on this record; report the service";
    OrderExpired = "order_expired", "the deadline of the order has passed", "do not pay; create a new order";
    DeadlineTooClose = "deadline_too_close", "too little time is left for the payment to be confirmed before the deadline", "do not pay; create a new order";
    CreatedInFuture = "created_in_future", "the order was created in the future", "check the clock of this machine before paying";

    // ---- the wallet's side
    ExpirationPassed = "expiration_passed", "the transaction would expire before its own timestamp", "take the expiration from a recent block, in milliseconds";
    ExpirationTooLate = "expiration_too_late", "the transaction would expire later than nodes allow, which is 24 hours ahead", "take the expiration from a recent block, in milliseconds";
    WalletChainMismatch = "wallet_chain_mismatch", "the wallet is set to a chain other than the asset's", "switch the wallet's network";
    NonceLimit = "nonce_limit", "the nonce is at its limit", "query the account's nonce again";
    PriorityFeeAboveCap = "priority_fee_above_cap", "the priority fee is above the fee cap", "raise the cap or lower the priority fee";
    KeyMalformed = "key_malformed", "not a valid secret key for this chain", "check the file and the format of the key";
    KeyMismatch = "key_mismatch", "the secret key does not control the sender", "use the sender's key";
    SignatureMalformed = "signature_malformed", "the signature has the wrong form or length", "check the signature format of your signer";
    SignatureHighS = "signature_high_s", "s is in the upper half of the curve order: nodes reject such signatures", "ask the signer for the low-s form";
    SignatureMismatch = "signature_mismatch", "not the signer's signature over this payload", "sign again with the signer's key";
    AccountNotDeployed = "account_not_deployed", "the signature is in the wrapper of ERC-6492, which the swap contract cannot read", "deploy the account first, by any transaction from it; then attach the signature again, to an order that was prepared with a connection, or with \"deployed\": true, which takes the wrapper off";
    SignatureCount = "signature_count", "no signature was given", "give one signature for each open request";
    NothingToSign = "nothing_to_sign", "the order has no such payload", "choose another funding path";
    SecretWrong = "secret_wrong", "not the secret of this secret hash", "check which order the secret belongs to";
    WarningRefused = "warning_refused", "the policy refuses orders with this warning", "do not sign, or change the policy deliberately";
    CannotBeJudged = "cannot_be_judged", "the chain shows something that cannot be judged, so nothing is paid", "do not pay this order; check the endpoints and the pinned contract, or create a new order";
    SignatureMissing = "signature_missing", "a signature is still missing", "attach a signature for each open request";
    TransactionMismatch = "transaction_mismatch", "the transaction is not one that this order needs", "do not rely on it; check which transaction the wallet sent";
    Internal = "internal", "internal error of this library", "report it with the input that caused it";

    // ---- Sui
    KindMalformed = "kind_malformed", "the bytes are not exactly one canonical transaction kind", service "do not sign; report the service";
    KindNotProgrammable = "kind_not_programmable", "the kind is not a programmable transaction", service "do not sign; report the service";
    UnexpectedCommand = "unexpected_command", "unexpected command in the transaction", service "do not sign; report the service";
    UnexpectedArgument = "unexpected_argument", "a command has an argument other than the one that the order needs", service "do not sign; report the service";
    UnexpectedInput = "unexpected_input", "an input is unused, has two roles, or does not have the form of its role", service "do not sign; report the service";
    UnknownRegistry = "unknown_registry", "the call changes an object other than the pinned orders registry", "do not sign; if the service moved, pin again and review the differences";
    CoinTypeMismatch = "coin_type_mismatch", "the call is for a coin other than the asset's", service "do not sign; report the service";
    ObjectDigestMalformed = "object_digest_malformed", "an object digest is not base58 of 32 bytes", "take the coin's reference from the node again";
    GasCoinCount = "gas_coin_count", "there are no gas coins, or more than a transaction may have", "give 1 to 256 coins, the small ones merged first; or none, and valid_during to pay from the address balance";
    GasCoinTwice = "gas_coin_twice", "a gas coin is listed twice", "list each coin once";
    GasCoinIsInput = "gas_coin_is_input", "a gas coin is also an input of the transaction", "pay the gas with another coin";
    AddressBalancePayment = "address_balance_payment", "the chain does not accept this payment from an address balance", "give valid_during of the current epoch, and reserve only SUI of the sender";
    InsufficientFunds = "insufficient_funds", "the coins do not cover the amount and the fees", "add coins, or lower the amount or the fees";

    // ---- Solana
    TransactionEncoding = "transaction_encoding", "the transaction is neither canonical base64 nor hex", service "do not sign; report the service";
    TransactionTooLarge = "transaction_too_large", "the transaction is larger than a packet of the network", service "do not sign; report the service";
    TransactionMalformed = "transaction_malformed", "not a valid transaction", service "do not sign; report the service";
    TransactionTrailing = "transaction_trailing", "extra bytes after the transaction", service "do not sign; report the service";
    MessageVersion = "message_version", "the message has a version that this library does not support", "update this library before signing";
    LookupTable = "lookup_table", "the message takes accounts from an address lookup table, which cannot be checked offline", service "do not sign; report the service";
    SignatureSlots = "signature_slots", "the number of signature slots is not the number of signers", service "do not sign; report the service";
    UnexpectedSigner = "unexpected_signer", "the transaction asks for signers that this order does not need", service "do not sign; report the service";
    FeePayerMismatch = "fee_payer_mismatch", "the fee payer is not the one of this funding path", service "do not sign; report the service";
    SponsorInvalid = "sponsor_invalid", "the sponsor is an account that the service cannot have", service "do not sign; report the service";
    UnknownSponsor = "unknown_sponsor", "the sponsor is not a pinned one of this chain", "do not sign; if the sponsor is new, pin it first";
    SponsorSignature = "sponsor_signature", "the slot of the other signer has no valid signature over this message", service "do not sign; report the service";
    UnexpectedInstruction = "unexpected_instruction", "the transaction does something other than lock the funds", service "do not sign; report the service";
    InstructionData = "instruction_data", "the instruction data is not exactly the encoding of its arguments", service "do not sign; report the service";
    AccountMismatch = "account_mismatch", "an account of the instruction is not the one that this order needs", service "do not sign; report the service";
    AccountFlags = "account_flags", "the signer or writable flag of an account is not what this order needs", service "do not sign; report the service";
    AccountUnused = "account_unused", "the message lists an account that nothing uses, or lists one twice", service "do not sign; report the service";
    GaslessNative = "gasless_native", "a native asset has no gasless funding path", service "do not sign; report the service";
    BlockhashMalformed = "blockhash_malformed", "the blockhash is not base58 of 32 bytes", "take it from a recent block";
    BlockhashExpired = "blockhash_expired", "the blockhash is no longer valid; it lasts 150 blocks, less than a minute", "take a recent one, or ask for a new order, and sign at once";

    // ---- Starknet
    FeltOutOfRange = "felt_out_of_range", "the number is not below Starknet's field prime, so libraries would reduce it to another one", service "do not sign; report the service";
    CallFormUnknown = "call_form_unknown", "the form of this call is not known for contracts of this generation", "do not guess, and do not reveal the secret; read the interface of the contract's class, and pin the generation that it belongs to";
    TypedDataRevision = "typed_data_revision", "the typed data is not of SNIP-12 revision 1, the only one that the contract hashes", service "do not sign; report the service";

    // ---- Bitcoin and Litecoin
    NotTaproot = "not_taproot", "the deposit address is not a taproot address, which an HTLC always is", service "do not pay; report the service";
    AddressNotDerived = "address_not_derived", "the deposit address is not that of the HTLC with the order's own terms", service "do not pay; report the service";
    AmountAboveSupply = "amount_above_supply", "the amount is more than the chain will ever have", "check the unit: amounts are in base units";
    FeeRateZero = "fee_rate_zero", "nodes do not relay a transaction with a fee rate of zero", "give a rate in sat/vB";
    FeeRateTooHigh = "fee_rate_too_high", "the fee rate is above the policy's", "check the unit, sat/vB, or raise the limit of the policy deliberately";
    UtxoTwice = "utxo_twice", "an unspent output is listed twice", "list each output once";
    UtxoUnsupported = "utxo_unsupported", "the unspent output has a script type that this library does not spend", "pay from p2pkh, p2sh-p2wpkh, p2wpkh or p2tr outputs";
    UtxoMismatch = "utxo_mismatch", "the previous transaction or redeem script does not belong to the unspent output", "read the output again from your node";
    ChangeToDeposit = "change_to_deposit", "the change would go to the deposit address", "give an address of your own";
    TransactionAboveStandard = "transaction_above_standard", "the transaction is larger than nodes relay", "use fewer coins";
    PsbtMismatch = "psbt_mismatch", "the signed PSBT is for another transaction", "sign the PSBT that was prepared";
    FundingMismatch = "funding_mismatch", "the outputs are not those that a recovery of this HTLC can spend", "read the outputs of the HTLC, and their values, from your node";
    InstantRefundMismatch = "instant_refund_mismatch", "the presigned instant refund is not that of this HTLC", "do not rely on it; refund after the timelock";
    SighashMismatch = "sighash_mismatch", "the hash to sign is not that of the owner's own instant refund", service "do not sign; report the service";

    // ---- what a node says before anything is signed
    GasPriceTooHigh = "gas_price_too_high", "the price of gas is above the policy's", "wait until gas is cheaper, or raise the limit of the policy deliberately";
    AllowanceTooLow = "allowance_too_low", "the contract may not take as many tokens as the order locks", "sign the approval as well";
    SimulationReverted = "simulation_reverted", "the transaction would fail on the chain", "do not sign; check balance, allowance and whether the order is funded already";
    ContractSignatureRefused = "contract_signature_refused", "the owner's account has code, which does not accept this signature (ERC-1271)", "pay the same order with the account's own transactions, which cost gas, or have its contract wallet sign the message";
    SimulationDiffers = "simulation_differs", "the transaction would move something other than what was verified", "do not sign; check which token and contract are pinned";
    FinalityMarkMissing = "finality_mark_missing", "the endpoint does not serve the mark that the finality rule of the chain needs", "use endpoints that serve it, or set another finality for the chain in the policy";
    LowerHeightMissing = "lower_height_missing", "the endpoint does not show the height of the chain below, which the contract may count", "use endpoints whose blocks have l1BlockNumber";
    NodeOutdated = "node_outdated", "the node is older than the newest rules of its chain, so it can follow a chain that others reject", "update the node, or use other endpoints";
    DecimalsDiffer = "decimals_differ", "the token has other decimals than the registry", "do not sign; check which token is pinned";
    MintRestricts = "mint_restricts", "an extension of the token's mint takes from a payout, or can stop it", "do not sign; choose another asset";
    PermissionMismatch = "permission_mismatch", "the account has no such permission, or it does not let these keys call contracts", "name a permission of the account that allows contracts to be called, with its keys and weights as the chain has them";
    ReceiverNotPayable = "receiver_not_payable", "the receiver could not be paid, so the redemption or refund would fail", "use another address, or wait until the receiver can be paid; nothing was shown";

    // ---- warnings
    AddressOnTrust = "address_on_trust", "the deposit address could not be checked: the keys behind it are unknown", "fetch the order record and verify again before paying";
    RefundKeyNotYours = "refund_key_not_yours", "the refund key is not yours: you cannot refund without the service", "send your own x-only key as source delegate";
    RedeemKeyNotYours = "redeem_key_not_yours", "the redeem key is not yours: whoever holds it receives the payout", "send your own x-only key as destination delegate";
    AmountBelowDust = "amount_below_dust", "nodes do not relay an output this small", "ask for a larger amount";
    SponsorPaysDeposit = "sponsor_pays_deposit", "the sponsor pays the deposit itself and not only the gas, and a refund goes to the owner", "have the sponsor's coins pay for gas only, unless the sponsor means to give the amount away";
    UnlimitedApproval = "unlimited_approval", "the approval is unlimited: the contract may take every token of this kind, now and later", "approve exactly the amount instead";
    ApprovalAboveAmount = "approval_above_amount", "the approval is above the amount", "approve exactly the amount instead";
    UnpinnedRegistryVersion = "unpinned_registry_version", "no version of the orders registry is pinned, so the one in the call is used", "pin the version at which the object became shared; a wrong one fails on chain";
    UnpinnedSolver = "unpinned_solver", "no solver is pinned for this chain, so nothing vouches for the redeemer", "pin the solvers of the service's liquidity list";
    SecretNotYours = "secret_not_yours", "the request names no secret hash: whoever chose it holds the secret", "choose the secret yourself and send its hash";
    TrustsTheService = "trusts_the_service", "only the service can redeem, or only its word releases the secret: it can take what you pay and pay nothing", "connect the destination chain, and an account that redeems there";
    NoOrderRecord = "no_order_record", "without the order record the destination leg is not checked", "fetch the order record and verify again";
    AmountOutsideLimits = "amount_outside_limits", "an amount is outside the limits that the asset had when it was pinned", "expect the service to refuse the order";
    PaysLessWithinSlippage = "pays_less_within_slippage", "the order pays out less than requested, within the allowed slippage", "decide whether the price is still right";
    DestinationTimelockClose = "destination_timelock_close", "the destination's timelock is more than half of the source's", "redeem promptly";
    TimelocksDependOnPace = "timelocks_depend_on_pace", "at today's block times the destination's timelock does not end before the source's", "do not pay: the solver could take both payments";
    DestinationTimelockShort = "destination_timelock_short", "the destination timelock leaves no time to redeem once the payout is final", "do not pay: the solver could take the payout back";
    AffiliateFeesNotRequested = "affiliate_fees_not_requested", "the order carries affiliate fees that were not requested", "ask the provider of this wallet";
    NonceDiffers = "nonce_differs", "the record's order nonce is not the requested one", "check that the record belongs to this order";
    GaslessFormUnproven = "gasless_form_unproven", "the message binds destination data, which no known contract hashes: the service may not be able to use it", "fund with the call instead if the service cannot";
    TimelockAboveListed = "timelock_above_listed", "the timelock is longer than the one that the registry lists for the chain", "expect to wait longer for a refund";
    FundingTxDiffers = "funding_tx_differs", "the record does not name the transaction of this output; what the chain shows decides", "make sure that your node shows the output: the record's entry is only a statement of the service";
    SwapIdUnchecked = "swap_id_unchecked", "a swap id could not be recomputed: its formula is not certain on this chain", "compare the fields shown";
    ContractSignatureUnverified = "contract_signature_unverified", "a contract wallet's signature can only be checked on chain", "simulate the call before relying on it";
    SignatureUnverified = "signature_unverified", "a signature of this scheme is passed on without proof: the network decides", "simulate the transaction before relying on it, unless it contains the secret";
    OwnSignatureOverwritten = "own_signature_overwritten", "the owner's signature slot already has bytes, which are overwritten", "ask the service why if it happens again";
    CalldataSuffix = "calldata_suffix", "the wallet appended bytes to the calldata, which the contract ignores", "compare the bytes with what your wallet says that it adds";
    WalletAssertion = "wallet_assertion", "the wallet added an instruction that stops the transaction if it does not do what the wallet expects", "nothing is needed: it moves nothing, and nothing is paid if it stops the transaction but the fee";
    WalletNonce = "wallet_nonce", "the wallet put a nonce account in place of the blockhash: the transaction does not expire, and can be sent at any later time", "if it is not sent soon, advance the nonce account before you pay in another way";
    WalletLockTime = "wallet_lock_time", "the wallet gave the transaction a lock time: no earlier block can contain it", "check that it has passed or is near: until then the transaction pays nothing, and its coins can be spent in another way";
    NonceGap = "nonce_gap", "earlier transactions of the account are not mined yet, and this one waits for them", "replace the oldest of them in your wallet if it stays unmined";
    FeeAbovePayout = "fee_above_payout", "the transaction may cost more than it pays", "wait until fees are lower, as long as the timelock allows it";
    GasLimitAboveCap = "gas_limit_above_cap", "the gas limit is above what the chain allows one transaction, so nodes refuse it", "set a lower gas limit";
    FeeTooLow = "fee_too_low", "the fee, or a limit of it, is lower than nodes relay or the transaction needs", "raise it";
    SecretForLess = "secret_for_less", "the redemption makes the secret public, and takes less than the amount of the order", "do not broadcast it unless you have given up the rest";
    OutputsLeft = "outputs_left", "the transaction does not spend these outputs of the HTLC", "recover them in a transaction of their own: by a refund, or once this redemption is in a block";
    MintAuthorities = "mint_authorities", "an authority of the token's mint can freeze, take, tax or stop the tokens at any time", "decide whether you trust whoever controls the token";
    SingleProvider = "single_provider", "one provider decides what a chain shows, so a false answer would go unnoticed", "add endpoints of other providers";
    FinalityIgnoresValue = "finality_ignores_value", "a payment of this token is final by the same rule, however much it is worth", "set a stricter finality for the asset in the policy, if a reorganization of the chain could be worth its price";
    KeyNotChecked = "key_not_checked", "the sender's address does not show its key, and no public key was given to compare", "make sure that the key is the sender's";
}

impl Code {
    /// Returns how serious a warning with this code is.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::AddressOnTrust
            | Self::DestinationTimelockShort
            | Self::TimelocksDependOnPace
            | Self::RedeemKeyNotYours
            | Self::RefundKeyNotYours
            | Self::SecretForLess
            | Self::SecretNotYours
            | Self::SponsorPaysDeposit
            | Self::TrustsTheService
            | Self::UnlimitedApproval => Severity::Danger,
            Self::CalldataSuffix
            | Self::FinalityIgnoresValue
            | Self::GaslessFormUnproven
            | Self::KeyNotChecked
            | Self::NonceDiffers
            | Self::NonceGap
            | Self::OwnSignatureOverwritten
            | Self::WalletAssertion
            | Self::WalletLockTime
            | Self::WalletNonce => Severity::Info,
            _ => Severity::Caution,
        }
    }

    /// Returns what to do about a wallet context, a key or a transaction of an order that is paid: what is redeemed or refunded. `None` where
    /// the remedy is about the payment.
    pub(crate) const fn remedy_after_paying(self) -> Option<&'static str> {
        match self {
            Self::AddressChecksum => Some("check every character"),
            Self::PayoutInvalid => Some("name an address or key of your own"),
            Self::SimulationReverted => Some("try again later: what it needs may not hold yet, or it has happened already"),
            Self::SimulationDiffers => Some("check which token and contract are pinned"),
            Self::DecimalsDiffer => Some("check which token is pinned"),
            Self::CannotBeJudged => Some("check the endpoints and the pinned contract, or refund when the timelock has expired"),
            Self::ReceiverNotPayable => Some("wait until the receiver can be paid, or refund when the timelock has expired"),
            Self::BlockhashExpired => Some("take a recent one"),
            Self::GasLimitTooHigh => Some("raise the limit of the policy deliberately"),
            Self::WarningRefused => Some("change the policy deliberately"),
            Self::UnexpectedField => Some("leave the field out"),
            Self::UnknownContract
            | Self::UnknownRegistry
            | Self::GenerationMismatch
            | Self::UnknownRedeemer
            | Self::UnknownSponsor
            | Self::TimelockTooLong
            | Self::RecordPaysLess
            | Self::PaysTooLittle
            | Self::RecordFunded
            | Self::RecordRedeemed
            | Self::RecordRefunded
            | Self::RecordSecretKnown
            | Self::OrderExpired
            | Self::DeadlineTooClose
            | Self::CreatedInFuture
            | Self::AddressOnTrust
            | Self::MintRestricts
            | Self::TimelocksDependOnPace
            | Self::DestinationTimelockShort => None,
            other if other.is_for_service() => None,
            other => Some(other.remedy()),
        }
    }

    /// Returns whether this is about the form of a document, which the caller and the service can both get wrong.
    pub(crate) const fn is_about_form(self) -> bool {
        matches!(
            self,
            Self::JsonSyntax
                | Self::JsonNotUtf8
                | Self::JsonDuplicateKey
                | Self::JsonTooDeep
                | Self::JsonTooLarge
                | Self::MissingField
                | Self::UnexpectedField
                | Self::WrongType
                | Self::TextNotPlain
                | Self::DecimalEmpty
                | Self::DecimalSign
                | Self::DecimalExponent
                | Self::DecimalFraction
                | Self::DecimalSpace
                | Self::DecimalHex
                | Self::DecimalLeadingZero
                | Self::DecimalDigit
                | Self::NumberTooLarge
                | Self::IntegerNotExact
                | Self::HexPrefix
                | Self::HexEmpty
                | Self::HexDigit
                | Self::HexOddLength
                | Self::HexLength
                | Self::AssetIdMalformed
                | Self::AddressMalformed
                | Self::AddressChecksum
                | Self::AddressNetwork
        )
    }

    /// Returns who has to act on a refusal with this code; `None` if that depends on the document that is refused.
    pub(crate) const fn fixed_blame(self) -> Option<Blame> {
        match self {
            Self::Internal => Some(Blame::Bug),
            Self::UnsupportedFamily
            | Self::UnknownChain
            | Self::UnknownAsset
            | Self::RecordVersion
            | Self::MessageVersion
            | Self::UnknownGeneration
            | Self::CallFormUnknown
            | Self::UtxoUnsupported => Some(Blame::Unsupported),
            Self::ServiceError | Self::StatusNotOk | Self::ErrorBesideOk => Some(Blame::Service),
            Self::RecordFunded
            | Self::RecordRedeemed
            | Self::RecordRefunded
            | Self::OrderExpired
            | Self::DeadlineTooClose
            | Self::CreatedInFuture
            | Self::NothingToSign
            | Self::WarningRefused => Some(Blame::Caller),
            _ => None,
        }
    }
}

impl fmt::Display for Code {
    /// Writes the stable name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a text could not be parsed: the error of every `FromStr` that parses a single value.
///
/// ```
/// use countersign::{AssetId, Code};
///
/// let error = "Bitcoin".parse::<AssetId>().unwrap_err();
/// assert_eq!(error.code(), Code::AssetIdMalformed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParseError(Code);

impl ParseError {
    /// Returns the stable code.
    #[must_use]
    pub const fn code(self) -> Code {
        self.0
    }
}

impl From<Code> for ParseError {
    fn from(code: Code) -> Self {
        Self(code)
    }
}

impl From<ParseError> for Code {
    fn from(error: ParseError) -> Self {
        error.0
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.meaning())
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_snake_case() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for name in names {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        }
    }

    #[test]
    fn the_mark_of_a_remedy_agrees_with_its_text() {
        for code in Code::ALL {
            assert_eq!(code.is_for_service(), code.remedy().contains("report the service"), "{code}: {}", code.remedy());
        }
    }
}
