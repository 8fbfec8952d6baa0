'use strict';

// The floor of the JavaScript client: the time to send g.inject(1) and read the answer.
// Usage: node floor.js URL SECONDS

const gremlin = require('gremlin');

const FORMS = { GraphBinary: 'application/vnd.graphbinary-v1.0', 'GraphSON 3': 'application/vnd.gremlin-v3.0+json' };

async function measure(url, seconds, form) {
  const client = new gremlin.driver.Client(url, { traversalSource: 'g', mimeType: FORMS[form] });
  await client.open();
  const ask = async (until, times) => {
    while (process.hrtime.bigint() < until) {
      const begin = process.hrtime.bigint();
      const answer = await client.submit('g.inject(1)');
      if (answer.toArray()[0] !== 1) throw new Error('the answer is wrong');
      times.push(Number(process.hrtime.bigint() - begin) / 1e3);
    }
  };
  const after = (part) => process.hrtime.bigint() + BigInt(Math.round(part * 1e9));
  await ask(after(seconds / 5), []);
  const times = [];
  await ask(after(seconds), times);
  await client.close();
  times.sort((a, b) => a - b);
  const at = (part) => times[Math.floor(times.length * part)].toFixed(0);
  const version = require('gremlin/package.json').version;
  console.log(`gremlin (JavaScript) ${version}\t${form}\t${at(0.5)}\t${at(0.99)}\t${(times.length / seconds).toFixed(0)}`);
}

(async () => {
  const [url, seconds] = process.argv.slice(2);
  for (const form of Object.keys(FORMS)) await measure(url, Number(seconds), form);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
