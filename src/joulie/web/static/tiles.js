// The cluster as tiles, rack by rack, on one small canvas a rack: the same for forty nodes and for five thousand.

import { h, isolate, say } from "./dom.js";
import { degrees, outOf, percent, watts } from "./format.js";
import { MODES, colours, css, describe, forgetColours, heldShort, heldWords, inkOn, pinWords } from "./palette.js";

const MAX_RACKS = 600; // beyond, all nodes are one block
const LEVELS = {
  large: { most: 80, height: 46, gap: 6, radius: 6, least: 66 },
  medium: { most: 800, height: 18, gap: 3, radius: 3 },
  small: { most: Infinity, height: 7, gap: 1, radius: 1, highest: 11 },
};

let lastNode = ""; // where the cursor was when another page was opened

export function heatMap(store, open) {
  const racksBox = h("div", { class: "racks" });
  const option = h("div", { id: "active-tile", role: "option", "aria-selected": "true", class: "active-tile" });
  const cursor = h("div", { class: "tile-cursor", role: "listbox", tabindex: "0", "aria-label": "Nodes, by rack", "aria-activedescendant": "active-tile" }, option);
  const tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const root = h("div", { class: "tiles" }, racksBox, cursor, tip);
  let racks = [];
  let rackOf = []; // by row
  let level = "large";
  let height = LEVELS.large.height; // of a tile
  let mode = "state";
  let mostW = 1;
  let active = -1;
  let scheduled = false;
  let painted = false;
  let tipRow = -1;

  function rebuild() {
    const { nodes } = store;
    const rows = new Map();
    for (let row = 0; row < nodes.name.length; row += 1) {
      const name = nodes.rack[row];
      if (!rows.has(name)) rows.set(name, []);
      rows.get(name).push(row);
    }
    if (rows.size > MAX_RACKS) {
      rows.clear();
      rows.set("", nodes.name.map((_, row) => row));
    }
    const nameless = nodes.rack.some(Boolean) && rows.size === 1 ? "all nodes" : "no rack";
    level = Object.keys(LEVELS).find((one) => nodes.name.length <= LEVELS[one].most);
    root.dataset.level = level;
    racks = [...rows].sort(([one], [other]) => rackOrder(one, other)).map(([name, members]) => makeRack(name, members, nameless));
    rackOf = [];
    for (const rack of racks) for (const row of rack.rows) rackOf[row] = rack;
    racksBox.replaceChildren(...racks.map((rack) => rack.element));
    cursor.hidden = racks.length === 0;
    tip.hidden = true;
    active = store.row.get(lastNode) ?? racks[0]?.rows[0] ?? -1;
    layOut();
  }

  function makeRack(name, rows, nameless) {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const [power, bar, zone] = [h("span", { class: "rack-power" }), h("i"), h("span", { class: "dim" })];
    const title = h("div", { class: "rack-title" }, h("b", { title: name || null }, name ? isolate(name) : nameless), power, h("span", { class: "bar" }, bar), zone);
    const rack = { name, rows, canvas, power, bar, zone, columns: 1, width: 0, dirty: true, sums: true };
    rack.element = h("div", { class: "rack" }, title, canvas);
    canvas.addEventListener("pointermove", (event) => hover(rack, event));
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("click", (event) => {
      const row = rowAt(rack, event.offsetX, event.offsetY);
      if (row !== null) leaveFor(row);
    });
    return rack;
  }

  function layOut() {
    const { gap, least, highest } = LEVELS[level];
    const widths = racks.map((rack) => rack.canvas.parentElement.clientWidth ? rack.canvas.clientWidth : 0); // reads first, writes after
    // Many small racks: as large as lets the largest of them stand in one line.
    const largest = Math.max(1, ...racks.map((rack) => rack.rows.length));
    const fitting = Math.floor(Math.max(...widths) / largest) - gap;
    height = highest ? Math.min(highest, Math.max(LEVELS[level].height, fitting)) : LEVELS[level].height;
    racks.forEach((rack, index) => {
      const width = widths[index];
      if (!width) return;
      const most = Math.max(1, Math.floor((width + gap) / ((least ?? height) + gap)));
      rack.columns = least ? Math.ceil(largest / Math.ceil(largest / most)) : most; // lines of equal length
      rack.width = least ? Math.min(150, (width - gap * (rack.columns - 1)) / rack.columns) : height;
      const lines = Math.ceil(rack.rows.length / rack.columns);
      const tall = lines * (height + gap) - gap;
      const ratio = devicePixelRatio || 1;
      rack.canvas.style.height = `${tall}px`;
      rack.canvas.width = Math.round(width * ratio);
      rack.canvas.height = Math.round(tall * ratio);
      rack.dirty = rack.sums = true;
    });
    schedule();
  }

  function schedule() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      for (const rack of racks) {
        if (rack.sums) writeSums(rack);
        if (rack.dirty) draw(rack);
      }
      placeCursor();
      if (!tip.hidden) showTip(tipRow);
      if (!painted) performance.mark("tiles-painted");
      painted = true;
    });
  }

  function writeSums(rack) {
    rack.sums = false;
    const { nodes, cluster } = store;
    let sum = 0;
    for (const row of rack.rows) sum += nodes.powerW[row] ?? 0;
    const capacity = cluster.facts.rackCapacityW;
    const part = rack.name ? sum / capacity : 0;
    say(rack.power, rack.name && level !== "small" ? outOf(sum, capacity) : watts(sum));
    rack.bar.style.width = `${Math.min(100, part * 100)}%`;
    rack.bar.className = part > 0.9 ? "over" : "";
    const zone = nodes.zone[rack.rows[0]];
    const ambient = cluster.facts.zoneAmbientC[zone];
    say(rack.zone, zone ? `${isolate(zone)}${ambient === undefined ? "" : ` ${degrees(ambient)}`}` : "");
  }

  function draw(rack) {
    rack.dirty = false;
    const { nodes } = store;
    const { gap, radius } = LEVELS[level];
    const ratio = devicePixelRatio || 1;
    const pen = rack.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, rack.canvas.width, rack.canvas.height);
    rack.rows.forEach((row, index) => {
      const x = (index % rack.columns) * (rack.width + gap);
      const y = Math.floor(index / rack.columns) * (height + gap);
      drawTile(pen, nodes, row, x, y, rack.width, radius);
    });
  }

  function drawTile(pen, nodes, row, x, y, width, radius) {
    const colour = MODES[mode].colour(nodes, row, mostW);
    const large = level === "large";
    const partly = mode === "state" && nodes.powerW[row] !== null && nodes.cappedW[row] > 0;
    const tinted = (mode === "state" || mode === "drift") && large;
    const faint = tinted ? (inkOn(colours().panel)[0] === 255 ? 0.34 : 0.16) : partly && level === "medium" ? 0.4 : nodes.cordoned[row] ? 0.5 : 1;
    shape(pen, x, y, width, height, radius);
    if (colour) {
      pen.fillStyle = css(colour, faint);
      pen.fill();
    }
    if (partly && level !== "small") {
      const part = Math.min(1, nodes.powerW[row] / nodes.cappedW[row]);
      pen.save();
      pen.clip();
      pen.fillStyle = css(colour);
      if (large) pen.fillRect(x, y + height - 5, width * part, 5);
      else pen.fillRect(x, y + height * (1 - part), width, height * part);
      pen.restore();
    } else if (tinted && mode === "drift") {
      pen.save();
      pen.clip();
      pen.fillStyle = css(colour);
      pen.fillRect(x, y, 4, height);
      pen.restore();
    }
    if (!colour) outline(pen, x, y, width, height, radius, css(colours().line), 1);
    if (large) write(pen, nodes, row, x, y, width, tinted || !colour ? colours().text : inkOn(colour));
    if (nodes.pin[row]) mark(pen, x + width, y, Math.min(10, height / 2), large ? css(colours().text) : css(inkOn(colour ?? colours().panel)));
    if (nodes.fault[row] === 2) outline(pen, x, y, width, height, radius, css(colours().fault), height < 10 ? 2 : 2.5);
  }

  function write(pen, nodes, row, x, y, width, ink) {
    pen.fillStyle = css(ink);
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(fitted(pen, nodes.name[row], width - 13), x + 7, y + 17);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = css(ink, 0.86);
    const value = { headroom: percent(nodes.headroom[row]), heat: percent(nodes.coolingStress[row]), drift: heldShort(nodes.enforced[row]) };
    pen.fillText(fitted(pen, value[mode] ?? watts(nodes.powerW[row]), width - 14), x + 7, y + 33);
  }

  function placeCursor() {
    const rack = rackOf[active];
    if (!rack || !rack.width) return;
    const box = rectOf(active);
    const own = root.getBoundingClientRect();
    Object.assign(option.style, { left: `${box.left - own.left - 3}px`, top: `${box.top - own.top - 3}px`, width: `${box.width + 6}px`, height: `${box.height + 6}px` });
    say(option, describe(store.nodes, active));
  }

  function rectOf(row) {
    const rack = rackOf[row];
    const { gap } = LEVELS[level];
    const index = rack.rows.indexOf(row);
    const box = rack.canvas.getBoundingClientRect();
    return {
      left: box.left + (index % rack.columns) * (rack.width + gap),
      top: box.top + Math.floor(index / rack.columns) * (height + gap),
      width: rack.width,
      height,
    };
  }

  function rowAt(rack, x, y) {
    const { gap } = LEVELS[level];
    const column = Math.floor(x / (rack.width + gap));
    if (column >= rack.columns) return null;
    return rack.rows[Math.floor(y / (height + gap)) * rack.columns + column] ?? null;
  }

  function hover(rack, event) {
    if (event.pointerType === "touch") return; // a finger opens the node
    const row = rowAt(rack, event.offsetX, event.offsetY);
    if (row === null) {
      tip.hidden = true;
      return;
    }
    showTip(row);
    const own = root.getBoundingClientRect();
    const left = Math.min(event.clientX - own.left + 14, own.width - 236);
    Object.assign(tip.style, { left: `${Math.max(0, left)}px`, top: `${event.clientY - own.top + 18}px` });
  }

  function showTip(row) {
    const { nodes } = store;
    tipRow = row;
    const line = (word, value) => h("div", {}, h("span", { class: "dim" }, word), h("span", {}, value));
    tip.replaceChildren(
      h("b", {}, isolate(nodes.name[row])),
      line("state", nodes.state[row] + (nodes.cordoned[row] ? ", cordoned" : "")),
      line("power", `${watts(nodes.powerW[row])} of ${watts(nodes.cappedW[row])}`),
      line("headroom", percent(nodes.headroom[row])),
      line("cooling in use", percent(nodes.coolingStress[row])),
      line("caps", heldWords(nodes.enforced[row])),
      ...(nodes.pin[row] ? [line("pin", pinWords(nodes, row))] : []),
      ...(nodes.hardware[row] ? [line("hardware", isolate(`${nodes.gpus[row] ? `${nodes.gpus[row]} × ` : ""}${nodes.hardware[row]}`))] : []),
    );
    tip.hidden = false;
  }

  // Towards the nearest tile in that direction.
  function stepTo(down) {
    const from = rectOf(active);
    let best = null;
    for (const rack of racks) {
      const { gap } = LEVELS[level];
      const box = rack.canvas.getBoundingClientRect();
      rack.rows.forEach((row, index) => {
        const dy = (box.top + Math.floor(index / rack.columns) * (height + gap) - from.top) * down;
        if (dy < height / 2) return;
        const dx = Math.abs(box.left + (index % rack.columns) * (rack.width + gap) - from.left);
        const cost = dy + 2 * dx;
        if (!best || cost < best.cost) best = { cost, row };
      });
    }
    return best?.row ?? active;
  }

  cursor.addEventListener("keydown", (event) => {
    const order = racks.flatMap((rack) => rack.rows);
    const at = order.indexOf(active);
    const moves = {
      ArrowRight: () => order[Math.min(order.length - 1, at + 1)],
      ArrowLeft: () => order[Math.max(0, at - 1)],
      ArrowDown: () => stepTo(1),
      ArrowUp: () => stepTo(-1),
      Home: () => order[0],
      End: () => order.at(-1),
    };
    if (event.key !== "Enter" && !moves[event.key]) return;
    event.preventDefault();
    if (event.key === "Enter") {
      leaveFor(active);
      return;
    }
    active = moves[event.key]();
    lastNode = store.nodes.name[active];
    placeCursor();
    option.scrollIntoView({ block: "nearest" });
    tipAtCursor();
  });
  cursor.addEventListener("focus", () => { if (cursor.matches(":focus-visible")) tipAtCursor(); });
  cursor.addEventListener("blur", () => { tip.hidden = true; });

  function leaveFor(row) {
    lastNode = store.nodes.name[row];
    open(lastNode);
  }

  function tipAtCursor() {
    if (active < 0 || !rackOf[active]?.width) return;
    showTip(active);
    const [box, own] = [rectOf(active), root.getBoundingClientRect()];
    Object.assign(tip.style, { left: `${Math.max(0, Math.min(box.left - own.left, own.width - 236))}px`, top: `${box.top - own.top + box.height + 8}px` });
  }

  const watcher = new ResizeObserver(() => layOut());
  watcher.observe(racksBox);

  return {
    root,
    cursor,
    rebuild() {
      findMost();
      rebuild();
    },
    update(moved, facts) {
      if ("rack" in moved) {
        this.rebuild();
        return;
      }
      if (facts) for (const rack of racks) rack.sums = true;
      if (mode === "power" && "powerW" in moved && findMost()) for (const rack of racks) rack.dirty = true;
      for (const [column, [rows]] of Object.entries(moved)) {
        for (const row of rows) {
          rackOf[row].dirty = true;
          if (column === "powerW") rackOf[row].sums = true;
        }
      }
      schedule();
    },
    colourBy(chosen) {
      mode = chosen;
      this.repaint();
    },
    repaint() {
      forgetColours();
      for (const rack of racks) rack.dirty = true;
      schedule();
    },
    legend: () => MODES[mode].legend(mostW, level),
    end: () => watcher.disconnect(),
  };

  // The scale's end grows in steps, so that it does not change with every watt.
  function findMost() {
    let most = 1;
    for (const value of store.nodes.powerW) if (value > most) most = value;
    const size = 10 ** Math.floor(Math.log10(most));
    const end = Math.ceil(most / size) * size;
    const moved = end !== mostW;
    mostW = end;
    return moved;
  }
}

const natural = new Intl.Collator("en", { numeric: true });

const rackOrder = (one, other) => (one === "") - (other === "") || natural.compare(one, other);

// How things are drawn on a tile.

function shape(pen, x, y, width, height, radius) {
  pen.beginPath();
  if (radius > 1) pen.roundRect(x, y, width, height, radius);
  else pen.rect(x, y, width, height);
}

function outline(pen, x, y, width, height, radius, colour, thickness) {
  const inset = thickness / 2;
  shape(pen, x + inset, y + inset, width - thickness, height - thickness, radius);
  pen.strokeStyle = colour;
  pen.lineWidth = thickness;
  pen.stroke();
}

// A folded corner: this node is pinned.
function mark(pen, right, top, size, colour) {
  pen.beginPath();
  pen.moveTo(right - size, top);
  pen.lineTo(right, top);
  pen.lineTo(right, top + size);
  pen.fillStyle = colour;
  pen.fill();
}

// The end of a name tells nodes apart, so it is the beginning that goes.
function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = text.slice(-40);
  while (kept.length > 1 && pen.measureText(`…${kept}`).width > width) kept = kept.slice(1);
  return `…${kept}`;
}
