'use strict';

// Runs the traversals of ../python/traversals.json with the official JavaScript client, as bytecode and as scripts,
// with each of its serializers, and transactions. Usage: node run.js URL [SERIALIZER…]. The exit code is 0 only if
// nothing failed.

const fs = require('node:fs');
const path = require('node:path');
const gremlin = require('gremlin');
const { answer, canonical } = require('./canonical.js');

const MIME_TYPES = {
  graphbinary: 'application/vnd.graphbinary-v1.0',
  graphson3: 'application/vnd.gremlin-v3.0+json',
  graphson2: 'application/vnd.gremlin-v2.0+json',
};
// The only graph that is written; it is emptied before each traversal over it.
const WRITABLE_SOURCE = 'ggraph';
const CONFLICT = 596;

const { P, TextP, t: T, order: Order, scope: Scope, column: Column, cardinality: Cardinality, pick: Pick, statics,
  withOptions: WithOptions, AnonymousTraversalSource } = gremlin.process;

/** The results of a gremlin-lang statement, evaluated as JavaScript; the text comes from this project's data file. */
async function evaluate(statement, g, loose) {
  const script = statement
    .replace(/(\d\.\d+)d/g, '$1') // doubles
    // The client's GraphSON 2 can write only maps that are objects.
    .replace(/\[('\w+'): ('\w+')\]/g, loose ? '{ $1: $2 }' : 'new Map([[$1, $2]])')
    .replace(/\b(in|from|with)\(/g, '$1_(');
  const scope = { ...statics, __: statics, g, P, TextP, T, Order, Scope, Column, Cardinality, Pick, WithOptions };
  // eslint-disable-next-line no-new-func
  return new Function('scope', `with (scope) { return ${script}; }`)(scope).toList();
}

class Server {
  constructor(url, serializer) {
    this.url = url;
    this.loose = serializer === 'graphson2';
    this.options = { mimeType: MIME_TYPES[serializer] };
    this.clients = new Map();
    this.remotes = new Map();
  }

  client(source) {
    if (!this.clients.has(source)) {
      this.clients.set(source, new gremlin.driver.Client(this.url, { ...this.options, traversalSource: source }));
    }
    return this.clients.get(source);
  }

  remote(source) {
    if (!this.remotes.has(source)) {
      const options = { ...this.options, traversalSource: source };
      this.remotes.set(source, new gremlin.driver.DriverRemoteConnection(this.url, options));
    }
    return this.remotes.get(source);
  }

  async submit(text, source) {
    return (await this.client(source).submit(text, null, { language: 'gremlin-lang' })).toArray();
  }

  async run(testCase, form) {
    if (testCase.source === WRITABLE_SOURCE) await this.submit('g.V().drop()', WRITABLE_SOURCE);
    const g = AnonymousTraversalSource.traversal().with_(this.remote(testCase.source));
    let results = [];
    for (const statement of testCase.gremlin) {
      results = form === 'script' ? await this.submit(statement, testCase.source) : await evaluate(statement, g, this.loose);
    }
    return results;
  }

  /** A transaction that is rolled back and one that commits. */
  async transactions() {
    await this.submit('g.V().drop()', WRITABLE_SOURCE);
    const g = AnonymousTraversalSource.traversal().with_(this.remote(WRITABLE_SOURCE));
    for (const end of ['rollback', 'commit']) {
      const tx = g.tx();
      const gtx = tx.begin();
      await gtx.addV('person').iterate();
      await tx[end]();
    }
    const count = Number((await this.submit('g.V().count()', WRITABLE_SOURCE))[0]);
    if (count !== 1) throw new Error(`after a rollback and a commit there are ${count} vertices`);
  }

  /** The action must end with a conflict, by the code and the message of its error. */
  async conflict(action) {
    let error = null;
    await action().catch((e) => { error = e; });
    if (error === null) throw new Error('no conflict is reported');
    if (error.statusCode !== CONFLICT || !error.message.includes('again')) {
      throw new Error(`instead of a conflict: status ${error.statusCode}, ${error.message}`);
    }
  }

  async expect(script, expected) {
    const got = (await this.submit(script, WRITABLE_SOURCE)).map(String).join();
    if (got !== expected) throw new Error(`${script} gives ${got}, expected ${expected}`);
  }

  /** The second writer learns of the conflict at once and can retry in another transaction. A refused commit leaves nothing. */
  async conflicts() {
    await this.submit('g.V().drop()', WRITABLE_SOURCE);
    await this.submit("g.addV('account').property('balance', 10)", WRITABLE_SOURCE);
    const g = AnonymousTraversalSource.traversal().with_(this.remote(WRITABLE_SOURCE));
    const [first, second] = [g.tx(), g.tx()];
    const [g1, g2] = [first.begin(), second.begin()];
    await g1.V().property('balance', 11).iterate();
    await this.conflict(() => g2.V().property('balance', 12).iterate());
    await second.rollback();
    await first.commit();
    const again = g.tx();
    await again.begin().V().property('balance', 12).iterate();
    await again.commit();
    await this.expect("g.V().values('balance')", '12');

    const refused = g.tx();
    const gtx = refused.begin();
    await gtx.V().values('balance').toList();
    await gtx.addV('note').iterate();
    await this.submit("g.V().property('balance', 13)", WRITABLE_SOURCE);
    await this.conflict(() => refused.commit());
    await this.expect('g.V().label()', 'account');
  }

  async close() {
    for (const connection of [...this.clients.values(), ...this.remotes.values()]) await connection.close();
  }
}

async function main(url, serializers) {
  const file = path.join(__dirname, '..', 'python', 'traversals.json');
  const { traversals } = JSON.parse(fs.readFileSync(file, 'utf8'));
  let [passed, failed] = [0, 0];
  const check = async (title, action) => {
    try {
      await action();
      passed += 1;
    } catch (error) {
      failed += 1;
      console.log(`${title}  FAILED  ${String(error.message).split('\n')[0].slice(0, 400)}`);
    }
  };
  for (const serializer of serializers) {
    const server = new Server(url, serializer);
    const { loose } = server;
    for (const form of ['bytecode', 'script']) {
      for (const testCase of traversals) {
        await check(`${serializer}, ${form}  ${testCase.name}`, async () => {
          const got = answer((await server.run(testCase, form)).map(canonical), testCase.ordered, loose);
          const expected = answer(testCase.expected, testCase.ordered, loose);
          if (got !== expected) throw new Error(`got ${got}, expected ${expected}`);
        });
      }
    }
    await check(`${serializer}  transactions`, () => server.transactions());
    await check(`${serializer}  conflicts`, () => server.conflicts());
    await server.close();
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed > 0 ? 1 : 0);
}

const [url, ...named] = process.argv.slice(2);
main(url, named.length > 0 ? named : Object.keys(MIME_TYPES));
