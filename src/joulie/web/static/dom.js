// Elements from code: text is always text, so nothing that a cluster says can become markup.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

// Touches the page only where the text is another one.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
  return element;
}

const filled = new WeakMap();

// Makes the content anew only where what it is made from is another; a link that had the focus keeps it.
export function refill(element, from, make) {
  const key = JSON.stringify(from);
  if (filled.get(element) === key) return;
  filled.set(element, key);
  const held = element.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  element.replaceChildren(...make());
  if (held) [...element.querySelectorAll("a")].find((link) => link.getAttribute("href") === held)?.focus({ preventScroll: true });
}

export function chip(state, word = state) {
  return h("span", { class: `chip ${STATES.includes(state) ? state : "unknown"}` }, h("i"), word || "unknown");
}

export const STATES = ["performance", "eco", "draining", "unknown"];

export const nodeLink = (name) => h("a", { href: `#/node/${encodeURIComponent(name)}`, class: "name", dir: "ltr" }, isolate(name));

export const podLink = (namespace, name) =>
  h("a", { href: `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, class: "name" }, isolate(`${namespace}/${name}`));

// A name that contains characters of another writing direction must not turn its surroundings around.
export const isolate = (text) => `\u2068${text}\u2069`;
