// Solana by @solana/web3.js.
import { Keypair, VersionedTransaction } from '@solana/web3.js';
import bs58 from 'bs58';

export const SDK = '@solana/web3.js';

const base64 = (bytes) => Buffer.from(bytes).toString('base64');

function read(text) {
  return VersionedTransaction.deserialize(Buffer.from(text, /^[0-9a-fA-F]+$/.test(text) ? 'hex' : 'base64'));
}

export function sign(request, wallet, response) {
  const { result } = JSON.parse(response);
  const bytes = bs58.decode(wallet.secret_key);
  const key = bytes.length === 64 ? Keypair.fromSecretKey(bytes) : Keypair.fromSeed(bytes);
  const own = read(result.versioned_tx);
  if (wallet.recent_blockhash) own.message.recentBlockhash = wallet.recent_blockhash;
  own.sign([key]);
  const artefacts = { transaction: { signed: base64(own.serialize()), signature: bs58.encode(own.signatures[0]) }, gasless: null };
  if (result.versioned_tx_gasless) {
    const gasless = read(result.versioned_tx_gasless);
    gasless.sign([key]);
    artefacts.gasless = { submission: base64(gasless.serialize()) };
  }
  return artefacts;
}
