// The cluster as this page knows it: everything once, then what changed, over one connection that mends itself.

const SILENT_MS = 12_000; // the server says something every 5 s
const AGAIN_MS = 2000;
const HIDDEN_MS = 20_000;
const LINES = 300;
const HOUR_S = 3600;

export const store = { cluster: null, nodes: null, row: new Map(), changes: [], history: null, live: false };

const listeners = new Set();
let heard = 0;
let source = null;
let hiding = 0;

// `listener(changes)`: null when everything is new, else {nodes, changes} as the stream tells them.
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function connect() {
  open();
  setInterval(() => {
    if (!document.hidden && performance.now() - heard > SILENT_MS) {
      setLive(false);
      open(); // a connection that is dead without saying so
    }
  }, 3000);
  // A hidden page needs no updates: close the connection, a browser has only six of them to one server.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => source.close(), HIDDEN_MS);
    else if (source.readyState === EventSource.CLOSED) open();
  });
}

function open() {
  source?.close();
  heard = performance.now();
  source = new EventSource("api/v1/stream");
  source.addEventListener("full", (event) => take(event, applyFull));
  source.addEventListener("delta", (event) => take(event, applyDelta));
  source.addEventListener("heartbeat", () => take(null, null));
  source.addEventListener("error", () => {
    setLive(false);
    // The browser tries again by itself, unless it was refused: then we do, from the start.
    if (source.readyState === EventSource.CLOSED) setTimeout(open, AGAIN_MS);
  });
}

function take(event, apply) {
  heard = performance.now();
  if (apply) apply(JSON.parse(event.data));
  setLive(store.cluster !== null);
}

function applyFull(all) {
  store.cluster = all.cluster;
  store.nodes = all.nodes;
  store.changes = all.changes;
  store.history = all.history;
  store.row = new Map(all.nodes.name.map((name, row) => [name, row]));
  tell(null);
}

function applyDelta(delta) {
  if (!store.nodes) return;
  Object.assign(store.cluster, delta.cluster);
  for (const [column, [rows, values]] of Object.entries(delta.nodes ?? {})) {
    const target = store.nodes[column];
    for (let index = 0; index < rows.length; index += 1) target[rows[index]] = values[index];
  }
  store.changes = [...(delta.changes ?? []).reverse(), ...store.changes]
    .filter((line) => line.atS > store.cluster.nowS - HOUR_S)
    .slice(0, LINES);
  if (delta.sample) addSample(...delta.sample);
  tell(delta);
}

function addSample(atS, powerW, cappedW) {
  const { timesS, powerW: power, cappedW: capped } = store.history;
  timesS.push(atS);
  power.push(powerW);
  capped.push(cappedW);
  while (timesS.length && timesS[0] < atS - HOUR_S) for (const series of [timesS, power, capped]) series.shift();
}

function setLive(live) {
  if (store.live === live) return;
  store.live = live;
  tell({});
}

function tell(changes) {
  for (const listener of listeners) listener(changes);
}

export async function ask(path) {
  const response = await fetch(`api/v1/${path}`, { cache: "no-store" });
  const gone = response.status === 404;
  if (!response.ok) throw Object.assign(new Error(gone ? (await response.text()).trim() : `HTTP ${response.status}`), { gone });
  return response.json();
}

// One thing of the cluster, asked for again and again while its page is shown.

// `show(found)` gets each answer. `missing(words)` is called when the thing is gone, or was never there; over any other
// fault what was shown stays.
export function refresher({ path, everyMs, show, missing, gone }) {
  let asked = 0;
  let busy = false;
  let ended = false;
  let seen = false;
  const sinceMs = () => performance.now() - asked;

  async function refresh() {
    if (busy || ended) return;
    busy = true;
    asked = performance.now();
    try {
      const found = await ask(path());
      if (ended) return;
      seen = true;
      show(found);
    } catch (error) {
      if (!ended && (error.gone || !seen)) missing(seen ? gone : `${error.message}.`);
    } finally {
      busy = false;
    }
  }

  refresh();
  const timer = setInterval(() => { if (!document.hidden && sinceMs() > everyMs) refresh(); }, 1000);
  return {
    refresh,
    sinceMs,
    end() {
      ended = true;
      clearInterval(timer);
    },
  };
}
