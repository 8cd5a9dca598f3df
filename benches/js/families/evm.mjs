// EVM by ethers.
import { Wallet } from 'ethers';

export const SDK = 'ethers';

export async function sign(request, wallet, response) {
  const { result } = JSON.parse(response);
  const signer = new Wallet(wallet.secret_key);
  const fees = wallet.gas_price
    ? { type: 0, gasPrice: wallet.gas_price }
    : { type: 2, maxFeePerGas: wallet.max_fee_per_gas, maxPriorityFeePerGas: wallet.max_priority_fee_per_gas };
  let { nonce } = wallet;
  const signTransaction = async ({ chain_id: chainId, gas_limit: gasLimit, to, value, data }) => ({
    signed: await signer.signTransaction({ ...fees, chainId, nonce: nonce++, gasLimit, to, value, data }),
  });
  const { approval_transaction: approval, typed_data: typed } = result;
  const artefacts = {
    approval: approval ? await signTransaction(approval) : null,
    initiate: await signTransaction(result.initiate_transaction ?? result.transaction),
    typed_data: null,
  };
  if (typed) {
    const { EIP712Domain: _, ...types } = typed.types;
    artefacts.typed_data = { signature: await signer.signTypedData(typed.domain, types, typed.message) };
  }
  return artefacts;
}
