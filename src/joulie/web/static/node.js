// One node: what it is, why, what it should do and really does, and the last hour.

import { chip, h, isolate, podLink, refill, say } from "./dom.js";
import { ago, age, cap, clockTime, count, known, limit, percent, plain, signed, watts } from "./format.js";
import { timeChart } from "./charts.js";
import { changeLine, findingLine } from "./overview.js";
import { refresher } from "./store.js";

const ASKED_AGAIN_MS = 2000;

export function nodePage(store, name) {
  const heading = h("h1", {}, isolate(name));
  const state = h("span", { class: "title-chip" });
  const about = h("p", { class: "dim about" });
  const reason = h("p", { class: "reason" });
  const budget = h("p", { class: "budget-note", hidden: true });
  const pin = h("p", { class: "pin-note", hidden: true });
  const found = h("ul", { class: "attention" });
  const figures = h("dl", { class: "facts" });
  const powerChart = timeChart({ title: "Power", height: 190, format: watts, tick: limit });
  const headroomChart = timeChart({ title: "Headroom", height: 120, low: 0, high: 100, format: (value) => percent(value) });
  const caps = h("tbody");
  const pods = h("tbody");
  const podsTitle = h("h2", { id: "pods-title" }, "Pods");
  const changes = h("ol", { class: "changes" });
  const why = h("section", { class: "panel why", "aria-label": "Why" }, reason, budget, pin, found);
  const hour = section("history", "The last hour", powerChart.root, headroomChart.root);
  const now = section("facts", "Now", figures);
  const capTable = section("caps", "Caps", table("Caps", ["", "wanted", "counts as", "result", "by", "reported"], caps));
  const podTable = h("section", { class: "panel pods-panel", "aria-labelledby": "pods-title" }, podsTitle, table("Pods", ["pod", "class", "cores", "GPUs"], pods));
  const story = section("node-changes", "What changed", changes);
  const body = h("div", { class: "node-body" }, h("div", { class: "column" }, why, hour, podTable), h("div", { class: "column" }, capTable, now, story));
  const root = h("div", { class: "page" }, h("nav", { class: "crumbs", "aria-label": "Path" }, h("a", { href: "#/" }, "Overview"), " / node"), h("div", { class: "title" }, heading, state), about, body);
  body.hidden = true;

  function showMissing(words) {
    body.hidden = true;
    refill(state, null, () => []);
    say(about, words);
  }

  function show(node) {
    body.hidden = false;
    refill(state, node.state, () => [chip(node.state)]);
    say(about, [hardware(node), node.rack && isolate(node.rack), node.zone && isolate(node.zone), scopeWords(node.scope)].filter(Boolean).join(" · "));
    say(reason, node.reason ? capital(node.reason) + "." : node.hasTwin ? `${capital(node.state)}, chosen by ${node.chosenBy || "an unknown policy"}.` : "Nothing was decided for this node yet.");
    budget.hidden = !node.budgetReason;
    say(budget, node.budgetReason ? `Power budgets: ${isolate(node.budgetReason)}. It counts in ${(node.budgetGroups ?? []).map(isolate).join(", ")}.` : "");
    pin.hidden = !node.pin;
    say(pin, node.pin ? pinWords(node) : "");
    refill(found, node.attention, () => node.attention.map((one) => findingLine(one, false)));
    caps.replaceChildren(...capRows(node));
    figures.replaceChildren(...factsOf(node));
    const { timesS, powerW, cappedW, headroom } = node.history;
    const times = [...timesS, node.nowS];
    powerChart.draw(times, [{ name: "draws", kind: "area", values: [...powerW, node.powerW ?? null] }, { name: "caps allow", kind: "cap", values: [...cappedW, node.cappedW ?? null] }]);
    headroomChart.draw(times, [{ name: "headroom", kind: "area", values: [...headroom, node.headroom ?? null] }]);
    say(podsTitle, `Pods (${count(node.podList.total)})`);
    refill(pods, node.podList, () => podRows(node.podList));
    refill(changes, node.changes, () => (node.changes.length ? node.changes.map((line) => changeLine(line, false)) : [h("li", { class: "calm" }, "Nothing changed in the last hour.")]));
  }

  const fresh = refresher({
    path: () => `nodes/${encodeURIComponent(name)}`,
    everyMs: ASKED_AGAIN_MS,
    show,
    missing: showMissing,
    gone: "It has left the cluster.",
  });
  return {
    root,
    title: name,
    focus: heading,
    repaint() {},
    update(changes) {
      const row = store.row.get(name);
      const touched = changes === null || Object.values(changes.nodes ?? {}).some(([rows]) => rows.includes(row));
      if (touched && fresh.sinceMs() > 400) fresh.refresh();
    },
    end: fresh.end,
  };
}

const section = (id, title, ...content) =>
  h("section", { class: `panel ${id}-panel`, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), content);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function hardware(node) {
  if (!node.hardware) return "hardware not known";
  return node.gpus ? `${node.gpus} × ${isolate(node.hardware)}` : isolate(node.hardware);
}

const scopeWords = (scope) => ({ cordoned: "cordoned", reserved: "reserved", out: "not managed" })[scope];

function pinWords(node) {
  const until = known(node.pinEndsAtS) ? ` until ${untilWords(node.pinEndsAtS, node.nowS)}` : "";
  const waits = node.pinWaits ? `; takes effect at the next decision (every ${age(node.decisionEveryS)})` : "";
  return `Pinned to ${node.pinProfile}${until} by NodePowerProfile/${isolate(node.pin)}${waits}.`;
}

function untilWords(at, now) {
  const today = new Date(at * 1000).toDateString() === new Date(now * 1000).toDateString();
  return today ? clockTime(at) : `${new Date(at * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${clockTime(at)}`;
}

function capRows(node) {
  const parts = [["CPU", node.cpuCapW, node.cpuCapPct, node.cpuEffectivePct, node.cpuControl, " each"]];
  if (node.gpus || known(node.gpuCapPct) || node.gpuControl) parts.push(["GPU", node.gpuCapW, node.gpuCapPct, node.gpuEffectivePct, node.gpuControl, " each"]);
  return parts.map(([part, inWatts, inPercent, effective, control, each]) =>
    h("tr", {}, h("th", { scope: "row" }, part), h("td", {}, cap(inWatts, inPercent, each)), h("td", {}, known(effective) ? `${plain(effective)} %` : "–"),
      h("td", {}, result(control), control?.message ? h("div", { class: "dim small" }, isolate(control.message)) : ""),
      h("td", {}, control?.backend ? isolate(control.backend) : "–"), h("td", {}, control ? ago(control.saidAtS, node.nowS) : "never")));
}

function result(control) {
  const word = control?.result ?? "no report";
  const mood = { applied: "good", blocked: "fault", error: "fault" }[word] ?? "unknown";
  return h("span", { class: `chip ${mood}` }, h("i"), word);
}

function factsOf(node) {
  const share = known(node.powerW) && node.cappedW ? ` (${percent((100 * node.powerW) / node.cappedW)} of what caps allow)` : "";
  const pairs = [
    ["Power", `${watts(node.powerW)}${share}`],
    ["Power source", { kepler: "measured (Prometheus)", http: "measured (HTTP)", utilization: "estimated from utilisation", static: "estimated from caps and requests" }[node.powerSource] ?? "none"],
    ["Trend", known(node.trendWPerMin) ? `${signed(node.trendWPerMin, 0)} W a minute` : "–"],
    ["Headroom", percent(node.headroom)],
    ["Cooling in use", percent(node.coolingStress)],
    ["Rack’s supply in use", percent(node.rackStress)],
    ["Maximum", watts(node.maxW)],
    ...(known(node.budgetW) ? [["Allowed by budgets", `${watts(node.budgetW)}${node.budgetIsConfirmed ? "" : ", not confirmed yet"}`]] : []),
    ["Performance pods", count(node.performancePods ?? 0)],
    ["Twin written", ago(node.twinAtS, node.nowS)],
    ["Agent reported", ago(node.agentAtS, node.nowS)],
  ];
  return pairs.map(([word, value]) => h("div", {}, h("dt", {}, word), h("dd", {}, value)));
}

function podRows({ pods, total }) {
  const rows = pods.map(podRow);
  if (!rows.length) rows.push(emptyRow("No pod runs here.", 4));
  if (total > rows.length) rows.push(emptyRow(`and ${count(total - rows.length)} more`, 4));
  return rows;
}

function podRow(pod) {
  const only = pod.performanceOnly ? chip("performance", "performance only") : pod.workloadClass;
  return h("tr", {}, h("td", {}, podLink(pod.namespace, pod.name)), h("td", {}, only, pod.terminating ? " · terminating" : ""), h("td", {}, plain(pod.cpuCores, 2)), h("td", {}, plain(pod.gpus)));
}

export const emptyRow = (text, columns) => h("tr", {}, h("td", { colspan: columns, class: "dim" }, text));

// Wide on a phone: it scrolls by itself, and the keyboard can reach it.
export function table(label, titles, body, className = "") {
  const head = h("thead", {}, h("tr", {}, titles.map((title) => (title ? h("th", { scope: "col" }, title) : h("td")))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${label}, table` }, h("table", { class: className }, head, body));
}
