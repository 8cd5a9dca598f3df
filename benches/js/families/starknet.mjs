// Starknet by starknet.js.
import { Signer, hash, shortString } from 'starknet';

export const SDK = 'starknet';

// starknet.js takes a function's name and hashes it, but the response contains the hash.
const FUNCTIONS = ['approve', ...['initiate', 'initiate_on_behalf'].flatMap((name) => [name, `${name}_with_destination_data`])];
const NAMES = new Map(FUNCTIONS.map((name) => [BigInt(hash.getSelectorFromName(name)), name]));
const hex = (value) => `0x${BigInt(value).toString(16)}`;

export async function sign({ source: { owner, delegate } }, wallet, response) {
  const { result } = JSON.parse(response);
  const signer = new Signer(wallet.secret_key);
  const calls = [result.approval_transaction, result.initiate_transaction ?? result.transaction]
    .filter(Boolean)
    .map(({ to, selector, calldata }) => ({ contractAddress: to, entrypoint: NAMES.get(BigInt(selector)), calldata }));
  const bound = ({ max_amount, max_price_per_unit }) => ({ max_amount: BigInt(max_amount), max_price_per_unit: BigInt(max_price_per_unit) });
  const { l1_gas, l2_gas, l1_data_gas } = wallet.resource_bounds;
  const signature = await signer.signTransaction(calls, {
    walletAddress: delegate ?? owner,
    cairoVersion: String(wallet.cairo_version ?? '1'),
    chainId: wallet.chain_id.startsWith('0x') ? wallet.chain_id : shortString.encodeShortString(wallet.chain_id),
    nonce: wallet.nonce,
    version: '0x3',
    resourceBounds: { l1_gas: bound(l1_gas), l2_gas: bound(l2_gas), l1_data_gas: bound(l1_data_gas) },
    tip: wallet.tip ?? '0x0',
    nonceDataAvailabilityMode: wallet.nonce_data_availability_mode ?? 'L1',
    feeDataAvailabilityMode: wallet.fee_data_availability_mode ?? 'L1',
    accountDeploymentData: wallet.account_deployment_data ?? [],
    paymasterData: wallet.paymaster_data ?? [],
  });
  const artefacts = { invoke: { signature: [hex(signature.r), hex(signature.s)] }, typed_data: null };
  if (result.typed_data) {
    const { r, s } = await signer.signMessage(result.typed_data, owner);
    artefacts.typed_data = { signature: [hex(r), hex(s)] };
  }
  return artefacts;
}
