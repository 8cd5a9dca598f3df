// Bitcoin and Litecoin by bitcoinjs-lib and ecpair.
import * as ecc from '@bitcoinerlab/secp256k1';
import * as bitcoin from 'bitcoinjs-lib';
import { ECPairFactory } from 'ecpair';

export const SDK = 'bitcoinjs-lib';

const { address, payments, Psbt } = bitcoin;
bitcoin.initEccLib(ecc);
const ECPair = ECPairFactory(ecc);

// bitcoinjs-lib does not support Litecoin. The values are those of Litecoin Core.
const litecoin = (bech32, bip32, pubKeyHash, scriptHash, wif) => ({ messagePrefix: '', bech32, bip32, pubKeyHash, scriptHash, wif });
const NETWORKS = {
  bitcoin: bitcoin.networks.bitcoin,
  bitcoin_testnet: bitcoin.networks.testnet,
  litecoin: litecoin('ltc', { public: 0x019da462, private: 0x019d9cfe }, 0x30, 0x32, 0xb0),
  litecoin_testnet: litecoin('tltc', { public: 0x0436f6e1, private: 0x0436ef7d }, 0x6f, 0x3a, 0xef),
};

// By the length of an output's script: the weight of an input that spends it, and the dust limit.
const KINDS = { 22: { weight: 272n, dust: 294n }, 34: { weight: 230n, dust: 330n }, 23: { weight: 364n, dust: 540n }, 25: { weight: 593n, dust: 546n } };
const TAPROOT = 34;

// ecpair lets the library draw randomness for Schnorr signatures. Fixed randomness makes every run the same.
const NO_RANDOMNESS = new Uint8Array(32);

// Computes ceil(vsize * rate) with integers.
function feeOf(weight, rate) {
  const [whole, fraction = ''] = rate.split('.');
  const scale = 10n ** BigInt(fraction.length);
  return (((weight + 3n) / 4n) * BigInt(whole + fraction) + scale - 1n) / scale;
}

const hexOf = (bytes) => Buffer.from(bytes).toString('hex');
const bytesOf = (text) => Buffer.from(text, 'hex');

/** Returns the keys, by the scripts that they can spend. */
function keysByScript(text, network) {
  const keys = new Map();
  for (const part of text.split(' ')) {
    const digits = part.replace(/^0x/, '');
    const key = digits.length === 64 ? ECPair.fromPrivateKey(bytesOf(digits), { network }) : ECPair.fromWIF(part, network);
    const pubkey = key.publicKey;
    const segwit = payments.p2wpkh({ pubkey, network });
    const scripts = [segwit, payments.p2sh({ redeem: segwit, network }), payments.p2pkh({ pubkey, network })];
    for (const { output } of scripts) keys.set(hexOf(output), key);
    keys.set(hexOf(payments.p2tr({ internalPubkey: pubkey.subarray(1), network }).output), key);
  }
  return keys;
}

export function sign({ source: { asset } }, wallet, response) {
  const { result } = JSON.parse(response);
  const network = NETWORKS[asset.split(':')[0]];
  const outputs = [{ script: address.toOutputScript(result.to.toLowerCase(), network), value: BigInt(result.amount) }];
  const change = address.toOutputScript(wallet.change_address, network);

  const psbt = new Psbt({ network, maximumFeeRate: 1_000_000 });
  let total = 0n;
  let weight = 42n + 4n * BigInt(9 + outputs[0].script.length);
  for (const { txid, vout, value, script_pubkey, redeem_script, previous_tx } of wallet.utxos) {
    total += BigInt(value);
    weight += KINDS[script_pubkey.length / 2].weight;
    psbt.addInput({
      hash: txid,
      index: vout,
      sequence: wallet.rbf === false ? 0xfffffffe : 0xfffffffd,
      ...(previous_tx
        ? { nonWitnessUtxo: bytesOf(previous_tx) }
        : { witnessUtxo: { script: bytesOf(script_pubkey), value: BigInt(value) } }),
      ...(redeem_script ? { redeemScript: bytesOf(redeem_script) } : {}),
    });
  }
  const rest = total - outputs[0].value - feeOf(weight + 4n * BigInt(9 + change.length), wallet.fee_rate);
  if (rest >= KINDS[change.length].dust) outputs.push({ script: change, value: rest });
  psbt.addOutputs(outputs);

  const keys = keysByScript(wallet.secret_key, network);
  wallet.utxos.forEach(({ script_pubkey }, index) => {
    const key = keys.get(script_pubkey);
    if (script_pubkey.length === 2 * TAPROOT) {
      const tapInternalKey = key.publicKey.subarray(1);
      psbt.updateInput(index, { tapInternalKey });
      const { publicKey, privateKey } = key.tweak(bitcoin.crypto.taggedHash('TapTweak', tapInternalKey));
      psbt.signInput(index, { publicKey, signSchnorr: (hash) => ecc.signSchnorr(hash, privateKey, NO_RANDOMNESS) });
    } else {
      psbt.signInput(index, key);
    }
  });
  const transaction = psbt.finalizeAllInputs().extractTransaction();
  return { deposit: { signed: transaction.toHex(), tx_id: transaction.getId() } };
}
