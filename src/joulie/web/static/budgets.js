// Power budgets as a tree: each group's limit, what is given out of it, what is drawn, its floor, state and reason.

import { h, isolate, refill, say } from "./dom.js";
import { age, clockTime, count, known, limit, watts } from "./format.js";
import { sparkline } from "./charts.js";
import { refresher } from "./store.js";

const FIRST_GROUPS = 12;
const PAST_MS = 15_000; // as often as the history gets a sample
const MOODS = { within: "good", settling: "draining", exceeded: "fault", infeasible: "fault" };
const CALM = ["within", "reported"];

// Of the groups that take in all managed nodes, the one with the lowest limit: as overview/summary.py has it.
export function tightest({ budgets, nodes }) {
  const whole = budgets.flatMap((one) => one.groups).filter((group) => nodes > 0 && group.nodes >= nodes);
  return whole.sort((a, b) => a.limitW - b.limitW || (a.name < b.name ? -1 : 1))[0] ?? null;
}

export function budgetTree(store) {
  const list = h("ul", { class: "budgets" });
  const more = h("button", { type: "button", class: "more", hidden: true });
  const total = h("span", { class: "dim" });
  const root = h("section", { class: "panel budgets-panel", "aria-labelledby": "budgets-title", hidden: true },
    h("div", { class: "panel-head" }, h("h2", { id: "budgets-title" }, "Power budgets"), total), list, more);
  const branches = new Map(); // by budget
  let past = null;
  let all = false;
  let fresh = null;
  more.addEventListener("click", () => {
    all = !all;
    update(null);
  });

  // The history is asked for only where there is something to show it for.
  function follow() {
    fresh ??= refresher({ path: () => "budgets", everyMs: PAST_MS, missing() {}, gone: "", show(found) {
      past = found.history;
      drawPast();
    } });
  }

  function drawPast() {
    for (const branch of branches.values()) branch.drawPast(past);
  }

  function update(changes) {
    if (changes && !changes.cluster?.budgets) return;
    const { budgets, nowS } = store.cluster;
    root.hidden = budgets.length === 0;
    if (budgets.length) follow();
    for (const name of [...branches.keys()]) if (!budgets.some((one) => one.name === name)) branches.delete(name);
    for (const one of budgets) if (!branches.has(one.name)) branches.set(one.name, budgetBranch(one.name));
    const wanted = budgets.map((one) => branches.get(one.name).root);
    if (wanted.some((each, index) => list.children[index] !== each) || list.children.length !== wanted.length) list.replaceChildren(...wanted);
    let left = all ? Infinity : FIRST_GROUPS;
    for (const one of budgets) left = Math.max(0, left - branches.get(one.name).update(one, nowS, left));
    const groups = budgets.reduce((sum, one) => sum + one.groups.length, 0);
    say(total, groups > budgets.length ? `${count(groups)} groups` : "");
    more.hidden = groups <= FIRST_GROUPS;
    say(more, all ? "Show fewer" : `Show all ${count(groups)} groups`);
    if (past) drawPast();
  }

  return { root, update, end: () => fresh?.end() };
}

function budgetBranch(name) {
  const about = h("span", { class: "dim about-budget" });
  const groups = h("ul", { class: "groups" });
  const root = h("li", { "data-budget": name }, h("div", { class: "budget-head" }, h("h3", {}, isolate(name)), about), groups);
  const leaves = new Map(); // by group

  function update(budget, nowS, room) {
    say(about, aboutWords(budget, nowS));
    // What is in trouble is shown first where not everything is.
    const shown = budget.groups.length <= room ? budget.groups : [...budget.groups].sort((a, b) => CALM.includes(a.state) - CALM.includes(b.state)).slice(0, room);
    for (const key of [...leaves.keys()]) if (!shown.some((group) => group.name === key)) leaves.delete(key);
    for (const group of shown) if (!leaves.has(group.name)) leaves.set(group.name, groupLeaf(group));
    const wanted = shown.map((group) => leaves.get(group.name).root);
    if (wanted.some((each, index) => groups.children[index] !== each) || groups.children.length !== wanted.length) groups.replaceChildren(...wanted);
    for (const group of shown) leaves.get(group.name).update(group);
    return shown.length;
  }

  return { root, update, drawPast: (past) => leaves.forEach((leaf, key) => leaf.drawPast(past.timesS, past.groups[key])) };
}

function aboutWords(budget, nowS) {
  const next = known(budget.untilS) ? `limit changes at ${clockTime(budget.untilS)}, in ${age(budget.untilS - nowS)}` : "";
  return [
    budget.groupBy ? `by ${isolate(budget.groupBy)}` : "",
    budget.mode === "report" ? "only reported" : "",
    budget.isPaused ? "paused: nothing is raised" : "",
    next,
    ...budget.windows.map(isolate),
  ].filter(Boolean).join(" · ");
}

const PARTS = [["limit", "limitW", limit], ["allocated", "allocatedW", watts], ["measured", "measuredW", watts], ["floor", "floorW", watts]];

function groupLeaf({ name, value }) {
  const state = h("span", { class: "group-state" });
  const nodes = h("span", { class: "dim" });
  const numbers = Object.fromEntries(PARTS.map(([part]) => [part, h("dd", { "data-part": part })]));
  const [given, drawn] = [h("i", { class: "given" }), h("i", { class: "drawn" })];
  const spark = sparkline(`${name} over the last hour`);
  const reason = h("p", { class: "dim group-reason" });
  const root = h("li", { class: "group", "data-group": name },
    h("div", { class: "group-name" }, h("b", {}, value ? isolate(value) : "all nodes"), nodes, state),
    h("dl", {}, PARTS.map(([part]) => h("div", {}, h("dt", {}, part), numbers[part]))),
    h("div", { class: "budget-bar", "aria-hidden": "true" }, given, drawn), spark.root, reason);

  function update(group) {
    say(nodes, `${count(group.nodes)} node${group.nodes === 1 ? "" : "s"}`);
    refill(state, group.state, () => [h("span", { class: `chip ${MOODS[group.state] ?? "unknown"}` }, h("i"), group.state)]);
    for (const [part, key, shown] of PARTS) say(numbers[part], shown(group[key]));
    const asked = group.askedW !== group.limitW && group.state === "unseen";
    if (asked) say(numbers.limit, `${limit(group.limitW)} → ${limit(group.askedW)}`);
    const share = (value) => `${Math.min(100, (100 * (value ?? 0)) / group.limitW)}%`;
    given.style.width = share(group.allocatedW);
    drawn.style.width = share(group.measuredW);
    root.dataset.state = group.state;
    say(reason, group.reason ? isolate(group.reason) : "");
  }

  return {
    root,
    update,
    // What is drawn where it is measured, else what is given out.
    drawPast(times, series) {
      if (!series) return;
      const measured = series.measuredW.some((value) => value !== null);
      spark.draw(times, measured ? series.measuredW : series.allocatedW, series.limitW);
    },
  };
}
