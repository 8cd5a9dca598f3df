// Pays with Mysten's own client. The argument is JSON with the members url, key, kind (from the service), the
// contract and its registry.
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';

const { url, key, kind, contract, registry } = JSON.parse(process.argv.at(-1));
const client = new SuiGrpcClient({ network: 'mainnet', baseUrl: url });
const signer = Ed25519Keypair.fromSecretKey(Uint8Array.from(Buffer.from(key, 'hex')));
const owner = signer.toSuiAddress();

const send = async (transaction) => {
  const sent = await client.signAndExecuteTransaction({ transaction, signer, include: { effects: true, balanceChanges: true } });
  if (sent.$kind !== 'Transaction') throw new Error(JSON.stringify(sent.FailedTransaction.status));
  const found = await client.waitForTransaction({ digest: sent.Transaction.digest, include: { transaction: true, events: true, effects: true } });
  return found.Transaction;
};

// A payment.
const payment = new Transaction();
const [coin] = payment.splitCoins(payment.gas, [1_000_000n]);
payment.transferObjects([coin], '0x' + '5'.repeat(64));
const paid = await send(payment);
const { balance } = await client.getBalance({ owner: '0x' + '5'.repeat(64) });

// An order, using what the service returned.
const order = Transaction.fromKind(Uint8Array.from(kind));
const locked = await send(order);
const { dynamicFields } = await client.listDynamicFields({ parentId: registry, include: { value: true } });
const { objects } = await client.getObjects({ objectIds: [registry, '0x' + '9'.repeat(64)] });
const state = await client.getCurrentSystemState();
const coins = await client.listCoins({ owner });

// Other functions of the contract.
const call = (name, args) => {
  const transaction = new Transaction();
  const target = `${contract}::AtomicSwap::${name}`;
  transaction.moveCall({ target, typeArguments: ['0x2::sui::SUI'], arguments: args(transaction) });
  return send(transaction);
};
const created = await call('create_orders_registry', () => []).then(() => 'sent', (error) => error.message);
const id = [...locked.events[0].bcs.slice(1, 33)];
const instant = await call('instant_refund', (transaction) => [transaction.object(registry), transaction.pure.vector('u8', id)])
  .then(() => 'sent', (error) => error.message);
const failing = new Transaction();
failing.moveCall({ target: '0x2::nothing::here' });
const failure = await send(failing).then(() => 'sent', (error) => error.message);

console.log(JSON.stringify({
  owner,
  paid: paid.checkpoint !== null && paid.transaction.commands.length,
  balance: balance.balance,
  events: locked.events.map((event) => event.eventType.split('::').slice(1).join('::')),
  fields: dynamicFields.map((field) => [field.name.type, field.value.bcs.length]),
  objects: objects.map((object) => object.code ?? object.owner.$kind),
  price: state.systemState.referenceGasPrice,
  coins: coins.objects.length,
  created,
  failure,
  instant,
}));
