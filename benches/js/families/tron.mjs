// Tron by TronWeb, without a node. The wallet provides the reference block.
import { TronWeb } from 'tronweb';

export const SDK = 'tronweb';

const tronWeb = new TronWeb({ fullHost: 'http://localhost' });

async function signCall(call, wallet, owner) {
  const { ref_block_bytes, ref_block_hash, expiration, timestamp, secret_key } = wallet;
  const options = {
    txLocal: true,
    feeLimit: Number(call.gas_limit),
    callValue: Number(call.value),
    input: call.data.slice(2).toLowerCase(),
    blockHeader: { ref_block_bytes, ref_block_hash, expiration, timestamp },
  };
  const { transaction } = await tronWeb.transactionBuilder.triggerSmartContract(call.to, '', options, [], owner);
  const signed = await tronWeb.trx.sign(transaction, secret_key);
  return { raw_data: signed.raw_data_hex, tx_id: signed.txID, signature: signed.signature[0].toLowerCase() };
}

// TronWeb can only hash addresses in base58.
function base58(address) {
  if (address.startsWith('T')) return address;
  const digits = address.replace(/^0x/, '');
  return TronWeb.address.fromHex(digits.length === 40 ? `41${digits}` : digits);
}

async function signMessage({ domain, message: { destinationData: _, ...message }, types }, key) {
  const signature = await tronWeb.trx.signTypedData(
    { ...domain, verifyingContract: base58(domain.verifyingContract) },
    // The contracts hash the message without its destination data.
    { Initiate: types.Initiate.filter(({ name }) => name !== 'destinationData') },
    { ...message, redeemer: base58(message.redeemer) },
    key,
  );
  return { signature: signature.toLowerCase() };
}

export async function sign({ source: { owner } }, wallet, response) {
  const { result } = JSON.parse(response);
  const { approval_transaction: approval, initiate_transaction: initiate, typed_data: typed } = result;
  return {
    approval: approval ? await signCall(approval, wallet, owner) : null,
    initiate: await signCall(initiate, wallet, owner),
    typed_data: typed ? await signMessage(typed, wallet.secret_key) : null,
  };
}
