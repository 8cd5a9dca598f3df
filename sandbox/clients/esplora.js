// A single-key wallet on a Bitcoin-like chain. bitcoinjs-lib signs, and an Esplora server provides the coins.
import * as ecc from "@bitcoinerlab/secp256k1";
import * as bitcoin from "bitcoinjs-lib";
import { ECPairFactory } from "ecpair";

bitcoin.initEccLib(ecc);

/** The networks in the format of bitcoinjs-lib. */
export const networks = {
  bitcoin: bitcoin.networks.bitcoin,
  bitcoin_testnet: bitcoin.networks.testnet,
  bitcoin_regtest: bitcoin.networks.regtest,
  litecoin: { messagePrefix: "\x19Litecoin Signed Message:\n", bech32: "ltc", bip32: { public: 0x019da462, private: 0x019d9cfe }, pubKeyHash: 0x30, scriptHash: 0x32, wif: 0xb0 },
};

/** Returns a wallet with the members `{ address, xOnly, get, pay, confirmed, signSchnorr }`. */
export const esploraWallet = (url, key, network) => {
  const get = async (path) => {
    const response = await fetch(`${url}${path}`);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const pair = ECPairFactory(ecc).fromPrivateKey(Buffer.from(key, "hex"), { network });
  const publicKey = Buffer.from(pair.publicKey);
  const own = bitcoin.payments.p2wpkh({ pubkey: publicKey, network });
  const pay = async (to, amount) => {
    const coins = (await get(`/address/${own.address}/utxo`)).sort((one, other) => other.value - one.value);
    const [coin] = coins;
    const fee = Math.ceil(Number((await get("/fee-estimates"))[2]) * 160);
    const psbt = new bitcoin.Psbt({ network });
    psbt.addInput({ hash: coin.txid, index: coin.vout, witnessUtxo: { script: own.output, value: BigInt(coin.value) } });
    psbt.addOutput({ address: to, value: BigInt(amount) });
    psbt.addOutput({ address: own.address, value: BigInt(coin.value - amount - fee) });
    psbt.signAllInputs({ publicKey, sign: (hash) => Buffer.from(pair.sign(hash)) }).finalizeAllInputs();
    const response = await fetch(`${url}/tx`, { method: "POST", body: psbt.extractTransaction().toHex() });
    const txid = await response.text();
    if (!response.ok) throw new Error(txid);
    return txid;
  };
  const confirmed = async (txid) => {
    for (let tries = 0; !(await get(`/tx/${txid}/status`)).confirmed; tries += 1) {
      if (tries >= 100) throw new Error("the payment does not come into a block");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const signSchnorr = (hash) => Buffer.from(pair.signSchnorr(hash));
  return { address: own.address, xOnly: publicKey.subarray(1).toString("hex"), get, pay, confirmed, signSchnorr };
};
