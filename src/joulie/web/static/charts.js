// Small pictures of the last hour, drawn as SVG so that the style sheet colours them.

import { h, svg } from "./dom.js";
import { clockTime } from "./format.js";

// A line with the area below it, and a limit above it where there is one; a gap where nothing is known.
export function sparkline(label) {
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "line" });
  const top = svg("path", { class: "line budget" });
  const root = svg("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": label }, area, line, top);
  return {
    root,
    draw(times, values, limits = []) {
      const seen = [...values, ...limits].filter((value) => value !== null);
      if (seen.length < 2) return;
      const [low, high] = padded(Math.min(...seen), Math.max(...seen));
      const x = scale(times[0], times.at(-1), 0, 100);
      const y = scale(low, high, 29, 1);
      const found = pieces(times, values, x, y);
      line.setAttribute("d", lineOf(found));
      top.setAttribute("d", stepsOf(pieces(times, limits, x, y)));
      area.setAttribute("d", areaOf(found, 30));
    },
  };
}

const padded = (low, high) => {
  const room = Math.max((high - low) * 0.15, Math.abs(high) * 0.02, 1e-6);
  return [Math.max(0, low - room), high + room];
};

const scale = (from, to, start, end) => (value) => (to === from ? end : start + ((value - from) / (to - from)) * (end - start));

// The points that are known, in pieces between gaps.
function pieces(times, values, x, y) {
  const found = [];
  let piece = null;
  values.forEach((value, index) => {
    if (value === null) piece = null;
    else {
      if (!piece) found.push((piece = []));
      piece.push([x(times[index]).toFixed(1), y(value).toFixed(1)]);
    }
  });
  return found;
}

const lineOf = (found) => found.map((piece) => `M${piece.map((point) => point.join(" ")).join("L")}`).join("");

const stepsOf = (found) => found.map(([first, ...rest]) => `M${first.join(" ")}${rest.map(([px, py]) => `H${px}V${py}`).join("")}`).join("");

const areaOf = (found, bottom) => found.map((piece) => `${lineOf([piece])}L${piece.at(-1)[0]} ${bottom}L${piece[0][0]} ${bottom}Z`).join("");

const MARGIN = { left: 56, right: 10, top: 10, bottom: 20 };

// Series over the last hour with axes, and the values under the pointer. series: [{name, values, kind, format}]
export function timeChart({ title, height, low = null, high = null, format, tick = null }) {
  const picture = svg("svg", { height, role: "img", "aria-label": title });
  const readout = h("output", { class: "readout dim" });
  const root = h("figure", { class: "chart" }, h("figcaption", {}, h("b", {}, title), readout), picture);
  let drawn = null;
  let width = 0;

  function draw(times, series) {
    drawn = { times, series };
    width = picture.clientWidth;
    if (!width) return; // not on the page yet: the observer comes back
    const seen = series.flatMap((one) => one.values).filter((value) => value !== null);
    picture.replaceChildren();
    if (times.length < 2 || seen.length < 2) {
      picture.append(svg("text", { x: width / 2, y: height / 2, class: "tick", "text-anchor": "middle" }, "the history begins now"));
      return;
    }
    const top = high ?? niceTop(Math.max(...seen));
    const bottom = low ?? 0;
    const x = scale(times[0], times.at(-1), MARGIN.left, width - MARGIN.right);
    const y = scale(bottom, top, height - MARGIN.bottom, MARGIN.top);
    drawn.x = x;
    for (const part of [0, 0.5, 1]) {
      const value = bottom + part * (top - bottom);
      picture.append(
        svg("path", { class: "gridline", d: `M${MARGIN.left} ${y(value)}H${width - MARGIN.right}` }),
        svg("text", { class: "tick", x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }, (tick ?? format)(value)),
      );
    }
    for (const part of [0, 0.5, 1]) {
      const at = times[0] + part * (times.at(-1) - times[0]);
      const anchor = ["start", "middle", "end"][part * 2];
      picture.append(svg("text", { class: "tick", x: x(at), y: height - 5, "text-anchor": anchor }, clockTime(at)));
    }
    for (const one of series) {
      const found = pieces(times, one.values, x, y);
      const path = one.kind === "cap" ? stepsOf(found) : lineOf(found);
      if (one.kind === "area") picture.append(svg("path", { class: "area", d: areaOf(found, y(bottom)) }));
      picture.append(svg("path", { class: { cap: "line dashed", budget: "line budget" }[one.kind] ?? "line", d: path }));
    }
    read(times.length - 1);
  }

  function read(index) {
    const { times, series } = drawn;
    const parts = series.map((one) => `${one.name} ${format(one.values[index])}`);
    readout.textContent = `${clockTime(times[index])} · ${parts.join(" · ")}`;
  }

  const cursor = svg("path", { class: "cursor" });
  picture.addEventListener("pointermove", (event) => {
    if (!drawn?.x) return;
    const at = event.offsetX;
    const { times, x } = drawn;
    let nearest = 0;
    times.forEach((time, index) => {
      if (Math.abs(x(time) - at) < Math.abs(x(times[nearest]) - at)) nearest = index;
    });
    cursor.setAttribute("d", `M${x(times[nearest])} ${MARGIN.top}V${height - MARGIN.bottom}`);
    picture.append(cursor);
    read(nearest);
  });
  picture.addEventListener("pointerleave", () => {
    cursor.remove();
    if (drawn?.x) read(drawn.times.length - 1);
  });
  const watcher = new ResizeObserver(() => { if (drawn && picture.clientWidth !== width) draw(drawn.times, drawn.series); });
  watcher.observe(picture);
  return { root, draw };
}

function niceTop(value) {
  const size = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => step * size).find((step) => step >= value * 1.02) ?? value;
}
