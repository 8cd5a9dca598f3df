// Sui by @mysten/sui.
import { decodeSuiPrivateKey } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Secp256k1Keypair } from '@mysten/sui/keypairs/secp256k1';
import { Secp256r1Keypair } from '@mysten/sui/keypairs/secp256r1';
import { Transaction } from '@mysten/sui/transactions';

export const SDK = '@mysten/sui';

const SCHEMES = { ED25519: Ed25519Keypair, Secp256k1: Secp256k1Keypair, Secp256r1: Secp256r1Keypair };

function keypairOf(text) {
  if (!text.startsWith('suiprivkey')) return Ed25519Keypair.fromSecretKey(Buffer.from(text.replace(/^0x/, ''), 'hex'));
  const { scheme, secretKey } = decodeSuiPrivateKey(text);
  return SCHEMES[scheme].fromSecretKey(secretKey);
}

export async function sign({ source: { owner } }, wallet, response) {
  const { result } = JSON.parse(response);
  const transaction = Transaction.fromKind(Uint8Array.from(result.ptb_bytes));
  transaction.setSender(owner);
  if (wallet.sponsor) transaction.setGasOwner(wallet.sponsor);
  if (wallet.expiration_epoch !== undefined) transaction.setExpiration({ Epoch: wallet.expiration_epoch });
  transaction.setGasPrice(wallet.gas_price);
  transaction.setGasBudget(wallet.gas_budget);
  transaction.setGasPayment(wallet.gas_payment.map(({ object_id: objectId, version, digest }) => ({ objectId, version, digest })));
  const { bytes, signature } = await keypairOf(wallet.secret_key).signTransaction(await transaction.build());
  return { transaction: { transaction_data: bytes, signature } };
}
