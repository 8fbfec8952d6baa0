// Sends the requests of graph-explorer: its schema discovery, searches and expansions over HTTP, once as its proxy
// sends them and once as its page does from a browser, with preflights. Also checks that pages of other sites are
// refused.
//
// Usage: run.js MANGROVE MODERN.json   (starts a server of its own, on a free port)
"use strict";

const { spawn } = require("node:child_process");
const readline = require("node:readline");
const assert = require("node:assert/strict");

const PAGE = "http://localhost:5173";
const ACCEPT = "application/vnd.gremlin-v3.0+json";

// A value of typed GraphSON 3 as plain JavaScript, as the page converts it before it draws.
function plain(value) {
  if (value === null || typeof value !== "object") return value;
  const inner = value["@value"];
  switch (value["@type"]) {
    case "g:Int32":
    case "g:Int64":
    case "g:Double":
    case "g:T":
      return inner;
    case "g:List":
    case "g:Set":
      return inner.map(plain);
    case "g:Map": {
      const entries = [];
      for (let at = 0; at < inner.length; at += 2) {
        const key = plain(inner[at]);
        entries.push([typeof key === "object" ? JSON.stringify(key) : key, plain(inner[at + 1])]);
      }
      return Object.fromEntries(entries);
    }
    case "g:Vertex": {
      const properties = Object.entries(inner.properties ?? {});
      const first = ([name, values]) => [name, plain(values[0]["@value"].value)];
      return { vertex: plain(inner.id), label: inner.label, ...Object.fromEntries(properties.map(first)) };
    }
    case "g:Edge": {
      const properties = Object.entries(inner.properties ?? {}).map(([name, p]) => [name, plain(p["@value"].value)]);
      const ends = [plain(inner.outV), inner.outVLabel, plain(inner.inV), inner.inVLabel];
      return { edge: plain(inner.id), label: inner.label, ends, ...Object.fromEntries(properties) };
    }
    case "g:Path":
      return plain(inner.objects);
    default:
      throw new Error(`the page draws no ${value["@type"]}`);
  }
}

// The two senders: the page without the proxy, and the proxy for the page.
const WAYS = {
  page: query => [{ Origin: PAGE, "Content-Type": "application/json", Accept: ACCEPT }, { query }],
  proxy: query => [
    { "User-Agent": "graph-explorer/2.0", "Content-Type": "application/json", Accept: ACCEPT },
    { gremlin: query, queryId: "8e13cc3c-37e9-4b39-a4fc-9f6bfa8a1a4e" },
  ],
};

async function ask(base, way, query) {
  const [headers, body] = WAYS[way](query);
  const response = await fetch(`${base}/gremlin`, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await response.json();
  assert.equal(response.status, 200, `${query}: ${JSON.stringify(answer)}`);
  if (way === "page") assert.equal(response.headers.get("access-control-allow-origin"), PAGE);
  assert.match(response.headers.get("content-type"), /^application\/vnd\.gremlin-v3\.0\+json/);
  assert.equal(answer.status.code, 200);
  assert.equal(answer.result.data["@type"], "g:List");
  return plain(answer.result.data);
}

const marko = { vertex: 1, label: "person", name: "marko", age: 29 };
const lop = { vertex: 3, label: "software", name: "lop", lang: "java" };
const created = { edge: 9, label: "created", ends: [1, "person", 3, "software"], weight: 0.4 };

// The requests with their answers. The order of rows counts if the query orders them.
const QUERIES = [
  ["vertex labels", "g.V().groupCount().by(label)", [{ person: 4, software: 2 }]],
  ["edge labels", "g.E().groupCount().by(label)", [{ knows: 2, created: 4 }]],
  [
    "attributes of vertices",
    `g.V().union(__.hasLabel("person").limit(1),__.hasLabel("software").limit(1)).fold()
      .project("person","software").by(unfold().hasLabel("person")).by(unfold().hasLabel("software"))`,
    [{ person: marko, software: lop }],
  ],
  [
    "attributes of edges",
    "g.V().limit(1).project('created').by(V().bothE('created').limit(1))",
    rows => assert.equal(rows[0].created.label, "created"),
  ],
  [
    "which labels are connected",
    `g.E().groupCount().by(project('source', 'edge', 'target').by(outV().label()).by(label()).by(inV().label()))`,
    [
      {
        '{"source":"person","edge":"knows","target":"person"}': 2,
        '{"source":"person","edge":"created","target":"software"}': 4,
      },
    ],
  ],
  [
    "which labels are connected, sampled",
    `g.V().limit(1).union(V().outE('knows').limit(10000),V().outE('created').limit(10000))
      .group().by(label()).by(project('s', 't').by(outV().label().fold()).by(inV().label().fold()).groupCount())`,
    [{ knows: { '{"s":["person"],"t":["person"]}': 2 }, created: { '{"s":["person"],"t":["software"]}': 4 } }],
  ],
  ["vertices of a type", 'g.V().hasLabel("person").count()', [4]],
  ["a search", 'g.V().hasLabel("person").or(has("name",containing("mar"))).range(0,10)', [marko]],
  ["an exact search", 'g.V().or(has("name","lop"),has("lang","lop")).range(0,10)', [lop]],
  ["a search by id", "g.V().or(has(id,1L)).range(0,10)", [marko]],
  ["a quoted search", 'g.V().or(has("name","\\"lop\\"")).range(0,10)', []],
  ["a page of a type", 'g.V().hasLabel("software").range(1,2)', rows => assert.equal(rows.length, 1)],
  ["vertices by id", "g.V(1L,3L)", [marko, lop]],
  ["edges by id", "g.E(9L)", [created]],
  ["neighbors by type", "g.V(1L).group().by(id).by(both().dedup().groupCount().by(label))", [{ 1: { person: 2, software: 1 } }]],
  [
    "an expansion",
    `g.V(1L).both().hasLabel("software").and(has("lang",containing("ja"))).dedup().order().by(id()).range(0, 10).as("v")
      .project("vertex", "edges").by().by(__.select("v").bothE().where(otherV().id().is(1L)).dedup().fold())`,
    [{ vertex: lop, edges: [created] }],
  ],
  ["a query of its own", "g.V(1L).out('created').path()", [[marko, lop]]],
  ["values of a map", "g.V(1L).valueMap()", [{ name: ["marko"], age: [29] }]],
];

function queries(base) {
  return Object.keys(WAYS).flatMap(way =>
    QUERIES.map(([name, query, expected]) => [
      `${way}: ${name}`,
      async () => {
        const rows = await ask(base, way, query);
        if (typeof expected === "function") expected(rows);
        else assert.deepEqual(rows, expected);
      },
    ]),
  );
}

function preflight(base, origin, headers) {
  const asked = { Origin: origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": headers };
  return fetch(`${base}/gremlin`, { method: "OPTIONS", headers: asked });
}

const REST = [
  [
    "the page may send its requests",
    async base => {
      const response = await preflight(base, PAGE, "content-type");
      assert.equal(response.status, 204);
      assert.equal(response.headers.get("access-control-allow-origin"), PAGE);
      assert.match(response.headers.get("access-control-allow-methods"), /\bPOST\b/);
      assert.match(response.headers.get("access-control-allow-headers"), /\bcontent-type\b/);
      assert.match(response.headers.get("vary"), /origin/i);
    },
  ],
  [
    "pages of other sites may send none",
    async base => {
      const response = await preflight(base, "https://evil.example", "content-type");
      assert.equal(response.status, 403);
      assert.equal(response.headers.get("access-control-allow-origin"), null);
      // The same for a request without a preflight: a browser sends the POST of a form, and only hides its answer.
      const headers = { Origin: "https://evil.example", "Content-Type": "text/plain" };
      const posted = await fetch(`${base}/gremlin`, { method: "POST", headers, body: '{"gremlin": "g.addV()"}' });
      assert.equal(posted.status, 403);
      assert.deepEqual(await ask(base, "proxy", "g.V().count()"), [6]);
    },
  ],
  [
    "without statistics it counts by itself",
    async base => {
      const response = await fetch(`${base}/pg/statistics/summary?mode=detailed`, { headers: { Origin: PAGE } });
      assert.equal(response.status, 404);
      assert.equal(response.headers.get("access-control-allow-origin"), PAGE);
      assert.equal(typeof (await response.json()).message, "string");
    },
  ],
  [
    "an error is shown with its message",
    async base => {
      const [headers, body] = WAYS.page("g.V().dance()");
      const response = await fetch(`${base}/gremlin`, { method: "POST", headers, body: JSON.stringify(body) });
      assert.equal(response.status, 500);
      assert.match(response.headers.get("content-type"), /application\/json/);
      assert.match((await response.json()).message, /dance/);
    },
  ],
  [
    "a query ends when its client gives it up",
    async base => {
      const [headers, body] = WAYS.page("g.inject(1).repeat(__.map(__.sum())).until(__.is(2))");
      const gone = AbortSignal.timeout(300);
      const asked = fetch(`${base}/gremlin`, { method: "POST", headers, body: JSON.stringify(body), signal: gone });
      await assert.rejects(asked, { name: "TimeoutError" });
      for (let tries = 0; tries < 100; tries += 1) {
        const metrics = await (await fetch(`${base}/metrics`)).text();
        if (metrics.includes('mangrove_queries_running{graph="g"} 0\n')) return;
        await new Promise(resolve => setTimeout(resolve, 50));
      }
      throw new Error("it still runs");
    },
  ],
];

async function main(mangrove, modern) {
  const flags = ["serve", "--listen", "127.0.0.1:0", "--allowed-origins", PAGE, "--load", modern];
  const server = spawn(mangrove, flags, { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = await new Promise((resolve, reject) => {
    readline.createInterface(server.stdout).once("line", line => resolve([line]));
    server.once("exit", code => reject(new Error(`the server ended with ${code}`)));
  });
  const base = line.match(/ws:\/\/(.*)\/gremlin/)[1];
  let failed = 0;
  const checks = [...queries(`http://${base}`), ...REST];
  for (const [name, run] of checks) {
    try {
      await run(`http://${base}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED graph-explorer: ${name}: ${error.message}`);
    }
  }
  server.removeAllListeners("exit");
  server.kill("SIGTERM");
  const code = await new Promise(resolve => server.once("exit", resolve));
  if (code !== 0) {
    failed += 1;
    console.log(`FAILED graph-explorer: the server ended with ${code}`);
  }
  console.log(`graph-explorer's requests: ${checks.length - failed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

main(...process.argv.slice(2)).then(
  code => process.exit(code),
  error => {
    console.log(`FAILED graph-explorer: ${error.message}\n0 passed, 1 failed`);
    process.exit(1);
  },
);
