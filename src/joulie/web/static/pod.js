// One pod: what every node scores for it, term by term, best first.

import { chip, h, isolate, nodeLink, refill, say } from "./dom.js";
import { count, fixed, plain, signed, watts } from "./format.js";
import { emptyRow, table } from "./node.js";
import { refresher } from "./store.js";

const PAGE = 50;
const MOST = 500; // the server gives no more at once
const ASKED_AGAIN_MS = 5000;
const titles = (terms) => ["", "node", "state", "score", "headroom", ...terms.map((term) => term.name), "pod adds", "remark"];

export function podPage(store, namespace, name) {
  const heading = h("h1", {}, isolate(`${namespace}/${name}`));
  const about = h("p", { class: "dim about" });
  const goes = h("p", { class: "reason" });
  const rows = h("tbody");
  const more = h("button", { type: "button", class: "more", hidden: true });
  const rest = h("p", { class: "dim" });
  const scores = h("div");
  const panel = h("section", { class: "panel", "aria-labelledby": "scores-title" }, h("h2", { id: "scores-title" }, "Score on every node"), scores, more, rest);
  const root = h("div", { class: "page" }, h("nav", { class: "crumbs", "aria-label": "Path" }, h("a", { href: "#/" }, "Overview"), " / pod"), heading, about, goes, panel);
  panel.hidden = true;
  let shown = PAGE;

  function showMissing(words) {
    panel.hidden = true;
    refill(goes, null, () => []);
    say(about, words);
  }

  function show(pod) {
    panel.hidden = false;
    const asks = [`${plain(pod.cpuCores, 2)} cores`, pod.gpus ? `${plain(pod.gpus)} ${pod.gpus === 1 ? "GPU" : "GPUs"}` : ""].filter(Boolean).join(", ");
    say(about, [pod.performanceOnly && pod.workloadClass !== "performance" ? `${pod.workloadClass}, kept off eco by its node affinity` : pod.workloadClass, asks, pod.terminating ? "terminating" : ""].filter(Boolean).join(" · "));
    const best = pod.nodes[0];
    const open = pod.open > 0 && best;
    const runs = pod.finished ? "Finished on " : "Runs on ";
    refill(goes, [runs, pod.node, open && best.node, open && best.score], () => (pod.node ? [runs, nodeLink(pod.node), "."] : open ? ["Waits; would go to ", nodeLink(best.node), ` (score ${best.score.toFixed(1)}).`] : ["Waits; no node would take it."]));
    const { terms } = pod;
    const sum = ["0.7 × headroom with the pod", ...terms.map((term) => term.name)].join(" + ");
    refill(scores, terms, () => [h("p", { class: "dim" }, `score = ${sum}, within 0 and 100; 50 where no fresh twin speaks`), table("Scores", titles(terms), rows, "scores")]);
    refill(rows, [pod.nodes, pod.node, pod.finished], () => (pod.nodes.length ? pod.nodes.map((node) => scoreRow(node, terms, pod.node, pod.finished)) : [emptyRow("There is no node.", titles(terms).length)]));
    more.hidden = pod.total <= pod.nodes.length || shown >= MOST;
    say(more, `Show more of ${count(pod.total)} nodes`);
    say(rest, pod.total > shown && shown >= MOST ? `The best ${count(pod.nodes.length)} of ${count(pod.total)} nodes; for all: joulie score` : "");
  }

  more.addEventListener("click", () => {
    shown = Math.min(MOST, shown + PAGE * 2);
    fresh.refresh();
  });
  const fresh = refresher({
    path: () => `pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}?limit=${shown}`,
    everyMs: ASKED_AGAIN_MS,
    show,
    missing: showMissing,
    gone: "It is no longer in the cluster.",
  });
  return {
    root,
    title: `${namespace}/${name}`,
    focus: heading,
    repaint() {},
    update() {},
    end: fresh.end,
  };
}

function scoreRow(node, terms, here, finished) {
  const points = node.breakdown;
  const shut = !node.feasible || node.misfit;
  const bar = h("i");
  bar.style.width = `${node.score}%`;
  const remark = node.node === here ? (finished ? "it ran here" : "it runs here") : !node.feasible ? `rejected: ${node.reason}` : node.misfit || (points ? "" : node.reason);
  const cell = (key, format) => h("td", {}, points ? format(points[key]) : "–");
  return h("tr", { class: [node.node === here ? "here" : "", shut ? "shut" : ""].join(" ").trim() || null },
    h("td", { class: "dim" }, String(node.place)),
    h("th", { scope: "row" }, nodeLink(node.node)),
    h("td", {}, chip(node.state)),
    h("td", { class: "score" }, h("span", { class: "score-bar", "aria-hidden": "true" }, bar), h("b", {}, node.score.toFixed(1))),
    h("td", {}, points ? `${fixed(node.headroomBefore)} → ${fixed(points.headroomScore)}` : "–"),
    terms.map((term) => cell(term.key, signed)), cell("podMarginalW", watts),
    h("td", { class: "remark" }, isolate(remark)));
}
