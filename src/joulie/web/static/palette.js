// The style sheet's colours as numbers for the canvas, and what colour a node gets in each mode.

import { count, known, percent, watts } from "./format.js";

const NAMES = ["performance", "eco", "draining", "unknown", "fault", "warning", "good", "panel", "text", "dim", "line",
  "warm-0", "warm-1", "warm-2", "warm-3", "warm-4", "cool-0", "cool-1", "cool-2", "cool-3", "cool-4"];

let cached = null;
let probe = null;

export const forgetColours = () => { cached = null; };

export function colours() {
  if (cached) return cached;
  probe ??= document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  cached = {};
  for (const name of NAMES) {
    probe.style.color = `var(--${name})`;
    cached[name] = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  }
  return cached;
}

export const css = ([red, green, blue], alpha = 1) => `rgb(${red} ${green} ${blue} / ${alpha})`;

const blend = (one, other, part) => one.map((value, index) => Math.round(value + (other[index] - value) * part));

function ramp(kind, part) {
  const place = Math.min(1, Math.max(0, part)) * 4;
  const step = Math.min(3, Math.floor(place));
  return blend(colours()[`${kind}-${step}`], colours()[`${kind}-${step + 1}`], place - step);
}

// Dark letters on light ground and the other way round.
export const inkOn = ([red, green, blue]) => (0.299 * red + 0.587 * green + 0.114 * blue > 140 ? [20, 26, 33] : [255, 255, 255]);

const HELD = {
  yes: ["good", "enforced", "enforced"],
  no: ["fault", "not enforced", "differs"],
  silent: ["draining", "agent silent", "silent"],
  unasked: ["unknown", "no cap wanted", "no cap"],
};

const share = (kind, part) => (known(part) ? ramp(kind, part) : null);

// Each mode: a colour for a row (null: not known), words for a reader, and a legend.
export const MODES = {
  state: {
    colour: (nodes, row) => colours()[nodes.state[row]] ?? colours().unknown,
    legend: (most, level) => ({
      words: ["performance", "eco", "draining", "unknown"].map((state) => [state, state]),
      note: level === "small" ? "" : "filled: power drawn, of what its caps allow",
    }),
  },
  power: {
    colour: (nodes, row, most) => share("warm", known(nodes.powerW[row]) ? nodes.powerW[row] / most : null),
    legend: (most) => ({ ramp: "warm", ends: ["0 W", watts(most)], note: "power drawn now" }),
  },
  headroom: {
    colour: (nodes, row) => share("cool", known(nodes.headroom[row]) ? nodes.headroom[row] / 100 : null),
    legend: () => ({ ramp: "cool", ends: ["0 %", "100 %"], note: "room for more work" }),
  },
  heat: {
    colour: (nodes, row) => share("warm", known(nodes.coolingStress[row]) ? nodes.coolingStress[row] / 100 : null),
    legend: () => ({ ramp: "warm", ends: ["0 %", "100 %"], note: "cooling in use, as the twin predicts" }),
  },
  drift: {
    colour: (nodes, row) => colours()[HELD[nodes.enforced[row]][0]],
    legend: () => ({ words: Object.values(HELD), note: "requested against enforced" }),
  },
};

export function describe(nodes, row) {
  const words = [nodes.name[row], nodes.rack[row], nodes.state[row]];
  if (nodes.cordoned[row]) words.push("cordoned");
  words.push(`${watts(nodes.powerW[row])} of ${watts(nodes.cappedW[row])} allowed`);
  words.push(`headroom ${percent(nodes.headroom[row])}`, `cooling ${percent(nodes.coolingStress[row])}`);
  words.push(HELD[nodes.enforced[row]][1]);
  if (nodes.pin[row]) words.push(pinWords(nodes, row));
  if (nodes.gpus[row]) words.push(`${count(nodes.gpus[row])} × ${nodes.hardware[row]}`);
  return words.filter(Boolean).join(", ");
}

export const pinWords = (nodes, row) => `pinned to ${nodes.pin[row]}${nodes.pinWaits[row] ? ", from the next decision on" : ""}`;

export const heldWords = (enforced) => HELD[enforced][1];

export const heldShort = (enforced) => HELD[enforced][2];
