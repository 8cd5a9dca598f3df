//! A page that uses a browser wallet (EIP-1193). The browser wallet chooses nonce, fees and gas, signs and broadcasts. The page then
//! checks that the broadcast transaction is the one that it verified.

use std::error::Error;

use alloy_network::TxSignerSync;
use alloy_signer_local::PrivateKeySigner;
use countersign::evm::alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use countersign::evm::alloy_primitives::TxKind;
use countersign::evm::external::SendTransaction;
use countersign::evm::{self, ApprovalPlan, Gasless, Payload};
use countersign::{CreateOrder, Policy, Proposal, U256, wire::RequestedLeg};
use countersign_examples::{pinned_registry, service};

/// A substitute for `window.ethereum`.
struct BrowserWallet {
    signer: PrivateKeySigner,
    nonce: u64,
}

impl BrowserWallet {
    /// Handles `eth_sendTransaction`. Returns the transaction as `eth_getTransactionByHash` would return it later.
    fn send_transaction(&mut self, call: &SendTransaction) -> Result<TxEnvelope, Box<dyn Error>> {
        let mut transaction = TxEip1559 {
            chain_id: call.chain_id.to(),
            nonce: self.nonce,
            gas_limit: 210_000,
            max_fee_per_gas: 2_000_000_000,
            max_priority_fee_per_gas: 10_000_000,
            to: TxKind::Call(call.to),
            value: call.value,
            input: call.data.clone(),
            ..TxEip1559::default()
        };
        self.nonce = self.nonce.saturating_add(1);
        let signature = self.signer.sign_transaction_sync(&mut transaction)?;
        Ok(transaction.into_signed(signature).into())
    }
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut wallet = BrowserWallet { signer: include_str!("../keys/evm.key").trim().parse()?, nonce: 41 };
    let request = CreateOrder::new(
        RequestedLeg::new("arbitrum:wbtc".parse()?, wallet.signer.address().to_string(), U256::from(3_100_000)),
        RequestedLeg::new("bitcoin:btc".parse()?, "bc1qy8znwzgy8xx68mjv06kfwgwh3jfgptylwhklck", U256::from(2_590_000)),
    )
    .with_secret_hash("0x0be2b009c9927d5e7b5369451166f9ab21ed30d41c7c8aba555c406cfb45e6cf".parse()?);
    let response = service::create_order(&request);
    let record = service::order(&request).ok_or("the service has no record of the order")?;
    let order = evm::verify(Proposal::new(&request, response).with_record(record), &pinned_registry(), &Policy::default())?;

    // Either one request, for wallets that batch calls (EIP-5792) ...
    let batch = order.deposit().send_calls(ApprovalPlan::default());
    println!("wallet_sendCalls {}", serde_json::to_string(&batch)?);

    // ... or one request for each call.
    for call in order.deposit().send_transactions(ApprovalPlan::default()) {
        println!("eth_sendTransaction {}", serde_json::to_string(&call)?);
        let sent = wallet.send_transaction(&call)?;
        println!("the wallet sent the {}: {}", order.matches(&sent)?, sent.tx_hash());
    }

    // The gasless message, as a parameter of eth_signTypedData_v4.
    let gasless = order.prepare(Gasless)?;
    for request in gasless.requests() {
        if let (Payload::TypedData(_), Some(message)) = (&request.payload, &order.deposit().typed_data) {
            println!("eth_signTypedData_v4 for {}: {}", request.signer, message.to_json());
        }
    }
    Ok(())
}
