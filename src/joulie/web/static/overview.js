// The page that answers at a glance: how much, which state, where it is hot, what is wrong, what changed.

import { STATES, chip, h, isolate, nodeLink, refill, say } from "./dom.js";
import { clockTime, count, degrees, known, limit, percent, watts } from "./format.js";
import { MODES } from "./palette.js";
import { sparkline, timeChart } from "./charts.js";
import { budgetTree, tightest } from "./budgets.js";
import { heatMap } from "./tiles.js";

const FIRST_LINES = 12;

let mode = "state"; // stays while other pages are shown

export function overview(store, open) {
  const power = figure("Power now", "power");
  const spark = sparkline("Power over the last hour");
  power.root.append(spark.root);
  const budget = figure("Budget", "budget");
  const budgetBar = meter();
  budget.root.append(budgetBar.root);
  const facility = figure("Facility", "facility");
  const states = figure("Nodes", "states");
  const stack = h("div", { class: "stack", "aria-hidden": "true" });
  const stateWords = h("ul", { class: "state-words" });
  states.root.append(stack, stateWords);
  const held = figure("Enforced", "enforced");
  const heldBar = meter();
  held.root.append(heldBar.root);

  const tiles = heatMap(store, open);
  const legend = h("div", { class: "legend" });
  const modes = h("div", { class: "modes", role: "radiogroup", "aria-label": "Colour by" });
  for (const name of Object.keys(MODES)) modes.append(modeButton(name));
  const noNodes = h("p", { class: "no-nodes", hidden: true }, "Joulie manages no node yet. To begin with one: ", h("code", {}, "kubectl label node NODE joulie.io/managed=true"));
  const racks = h("section", { class: "panel racks-panel", "aria-labelledby": "racks-title" },
    h("div", { class: "panel-head" }, h("h2", { id: "racks-title" }, "Racks"), modes), legend, tiles.root, noNodes);

  const attentionCount = h("span", { class: "number" });
  const attentionList = h("ul", { class: "attention" });
  const attention = h("section", { class: "panel attention-panel", "aria-labelledby": "attention-title" },
    h("div", { class: "panel-head" }, h("h2", { id: "attention-title" }, "Attention "), attentionCount), attentionList);

  const changeList = h("ol", { class: "changes" });
  const more = h("button", { type: "button", class: "more", hidden: true }, "Show all");
  const changes = h("section", { class: "panel changes-panel", "aria-labelledby": "changes-title" },
    h("div", { class: "panel-head" }, h("h2", { id: "changes-title" }, "What changed"), h("span", { class: "dim" }, "in the last hour")), changeList, more);

  const chart = timeChart({ title: "Power", height: 200, format: watts, tick: limit });
  const hour = h("section", { class: "panel hour-panel", "aria-labelledby": "hour-title" }, h("h2", { id: "hour-title" }, "The last hour"), chart.root);

  const budgets = budgetTree(store);
  const body = h("div", { class: "overview" });
  const root = h("div", {}, h("h1", { class: "hidden" }, "Cluster overview"),
    h("section", { class: "figures", "aria-label": "Now" }, power.root, budget.root, facility.root, states.root, held.root), budgets.root, body);
  body.append(h("div", { class: "column" }, racks, hour), h("div", { class: "column" }, attention, changes));
  let all = false;
  more.addEventListener("click", () => {
    all = !all;
    writeChanges();
  });

  function modeButton(name) {
    const button = h("button", { type: "button", role: "radio", "data-mode": name }, name);
    button.addEventListener("click", () => colourBy(name));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const names = Object.keys(MODES);
      const next = names[(names.indexOf(name) + step + names.length) % names.length];
      colourBy(next);
      modes.querySelector(`[data-mode=${next}]`).focus();
    });
    return button;
  }

  function colourBy(chosenMode) {
    mode = chosenMode;
    for (const button of modes.children) {
      const chosen = button.dataset.mode === mode;
      button.setAttribute("aria-checked", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
    tiles.colourBy(mode);
    writeLegend();
  }

  function writeLegend() {
    const { words, ramp, ends, note } = tiles.legend();
    const key = words ? words.map(([colour, word]) => h("span", { class: `chip ${colour}` }, h("i"), word))
      : [h("span", { class: "ramp-ends" }, ends[0], h("i", { class: `ramp ${ramp}` }), ends[1])];
    legend.replaceChildren(...key, h("span", { class: "dim note" }, note));
  }

  function writeFigures() {
    const { cluster, history } = store;
    const { facts } = cluster;
    const whole = tightest(cluster);
    const wholeW = whole ? whole.limitW : facts.budgetW;
    const told = cluster.nodes > (cluster.sources.none ?? 0); // else the sum is of nothing, and not 0 W
    power.set(told ? watts(cluster.powerW) : "–", told ? `caps allow ${limit(cluster.cappedW)}, ${tierWords(cluster)}` : "not known yet");
    const times = [...history.timesS, cluster.nowS];
    const drawn = [...history.powerW, told ? cluster.powerW : null];
    spark.draw(times, drawn);
    chart.draw(times, [
      { name: "draws", kind: "area", values: drawn },
      { name: "caps allow", kind: "cap", values: [...history.cappedW, told ? cluster.cappedW : null] },
      ...(wholeW ? [{ name: "budget", kind: "budget", values: times.map(() => wholeW) }] : []),
    ]);
    const most = wholeW || cluster.cappedW;
    const drawnW = whole?.measuredW ?? cluster.powerW;
    const part = most ? (100 * drawnW) / most : 0;
    budget.title(whole ? `Budget ${isolate(whole.name)}` : wholeW ? "Budget" : "Of what caps allow");
    const over = wholeW > 0 && part > 100;
    const given = known(whole?.allocatedW) ? `${watts(whole.allocatedW)} allocated of ${limit(most)}` : `of ${limit(most)}`;
    const unset = cluster.budgets.length ? "budgets for parts of it, below" : "no budget is set";
    budget.set(told ? percent(part) : "–", wholeW ? (over ? `${watts(drawnW - most)} over ${limit(most)}` : given) : unset);
    budgetBar.set(part, over ? "over" : part > 90 && wholeW ? "near" : "");
    const zones = Object.entries(facts.zoneAmbientC);
    facility.set(known(facts.pue) ? `PUE ${facts.pue.toFixed(2)}` : known(facts.ambientC) ? degrees(facts.ambientC) : "–",
      zones.slice(0, 4).map(([zone, c]) => `${isolate(zone)} ${degrees(c)}`).join(" · ") ||
        (known(facts.pue) && known(facts.ambientC) ? degrees(facts.ambientC) : known(facts.pue) || known(facts.ambientC) ? "" : "no facility telemetry"));
    states.set(count(cluster.nodes), cluster.unmanaged ? `and ${count(cluster.unmanaged)} that Joulie does not manage` : facts.policy ? `policy ${facts.policy}` : "");
    writeStates(cluster);
    const missing = cluster.asked - cluster.enforced;
    held.set(`${count(cluster.enforced)} / ${count(cluster.asked)}`, cluster.asked === 0 ? "no cap is wanted" : missing ? `${count(missing)} not as requested` : "requested equals enforced");
    heldBar.set(cluster.asked ? (100 * cluster.enforced) / cluster.asked : 0, "good", missing > 0);
  }

  function writeStates(cluster) {
    const shown = STATES.filter((state) => cluster.states[state] || state !== "unknown");
    refill(stack, cluster.states, () => shown.map((state) => {
      const part = h("i", { class: state });
      part.style.flexGrow = cluster.states[state];
      return part;
    }));
    refill(stateWords, cluster.states, () => shown.map((state) => h("li", { "data-state": state }, chip(state, `${count(cluster.states[state])} ${state}`))));
  }

  function writeAttention() {
    const { attention: found, attentionCounts: counts } = store.cluster;
    const total = Object.values(counts).reduce((sum, number) => sum + number, 0);
    say(attentionCount, total ? count(total) : "");
    attentionCount.classList.toggle("grave", found.some((one) => one.severity === "fault"));
    refill(attentionList, [found, counts], () => {
      const lines = found.map((one) => findingLine(one));
      for (const [kind, number] of Object.entries(counts)) {
        const more = number - found.filter((one) => one.kind === kind).length;
        if (more > 0) lines.push(h("li", { class: "dim" }, h("p", {}, `and ${count(more)} more: ${kind.replaceAll("-", " ")}`)));
      }
      return lines.length ? lines : [h("li", { class: "calm" }, h("p", {}, "Nothing needs attention."))];
    });
  }

  function writeChanges() {
    const lines = store.changes.slice(0, all ? undefined : FIRST_LINES);
    refill(changeList, lines.map((line) => line.number), () => (lines.length ? lines.map((line) => changeLine(line)) : [h("li", { class: "calm" }, "Nothing changed yet.")]));
    more.hidden = store.changes.length <= FIRST_LINES;
    say(more, all ? "Show fewer" : `Show all ${count(store.changes.length)}`);
  }

  return {
    root,
    title: "",
    focus: tiles.cursor,
    colourBy,
    repaint: () => tiles.repaint(),
    update(changes) {
      if (!store.cluster) return;
      if (changes === null) {
        body.dataset.large = String(store.nodes.name.length > 800);
        tiles.rebuild();
        colourBy(mode);
        noNodes.hidden = store.nodes.name.length > 0;
        tiles.root.hidden = legend.hidden = !noNodes.hidden;
      } else if (changes.nodes || changes.cluster?.facts) tiles.update(changes.nodes ?? {}, changes.cluster?.facts);
      writeFigures();
      budgets.update(changes);
      writeAttention();
      writeChanges();
    },
    end() {
      budgets.end();
      tiles.end();
    },
  };
}

export function findingLine(one, linked = true) {
  return h("li", { class: one.severity },
    h("p", {}, h("span", { class: "badge" }, one.severity), one.node && linked ? [nodeLink(one.node), " "] : "", isolate(one.text)),
    h("code", { class: "next" }, isolate(one.nextStep)));
}

export function changeLine(line, linked = true) {
  const states = line.after ? [chip(line.before), h("span", { class: "arrow", "aria-label": "to" }, "→"), chip(line.after)] : [];
  const mood = line.good === false ? "bad" : line.good ? "good" : line.kind;
  return h("li", { class: mood, "data-node": line.node },
    h("time", {}, clockTime(line.atS)),
    h("span", { class: "what" }, linked && line.node ? nodeLink(line.node) : "", states, line.text ? h("span", {}, isolate(line.text)) : ""));
}

// Whether the number is measured or worked out.
function tierWords({ sources, nodes }) {
  const measured = (sources.kepler ?? 0) + (sources.http ?? 0);
  if (measured === nodes) return "measured";
  return measured ? `${count(measured)} of ${count(nodes)} nodes measured` : "estimated";
}

function figure(title, name) {
  const [head, value, below] = [h("h2", {}, title), h("p", { class: "value", "data-figure": name }), h("p", { class: "dim below" })];
  const root = h("div", { class: `panel figure ${name}` }, h("div", { class: "words" }, head, value, below));
  return {
    root,
    title: (text) => say(head, text),
    set(text, note) {
      say(value, text);
      value.classList.toggle("long", text.length > 11);
      say(below, note);
    },
  };
}

function meter() {
  const fill = h("i");
  const root = h("div", { class: "meter", "aria-hidden": "true" }, fill);
  return {
    root,
    set(part, mood, restIsBad = false) {
      fill.style.width = `${Math.min(100, part)}%`;
      fill.className = mood;
      root.classList.toggle("rest-bad", restIsBad);
    },
  };
}
