// The search box: nodes from what the page knows, pods from the server.

import { h, isolate } from "./dom.js";
import { ask } from "./store.js";

const NODES = 8;
const PODS = 6;
const PAUSE_MS = 150;

export function searchBox(store) {
  const input = document.getElementById("search");
  const list = document.getElementById("found");
  let chosen = 0;
  let timer = 0;
  let round = 0;

  function show(options) {
    list.replaceChildren(...options);
    list.hidden = options.length === 0;
    input.setAttribute("aria-expanded", String(options.length > 0));
    choose(0);
  }

  function choose(index) {
    const options = [...list.children];
    options.forEach((option, at) => { option.id = `found-${at}`; });
    chosen = options.length ? (index + options.length) % options.length : 0;
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
    if (options.length) {
      input.setAttribute("aria-activedescendant", options[chosen].id);
      options[chosen].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function close() {
    round += 1;
    show([]);
  }

  function go(address) {
    input.value = "";
    close();
    location.hash = address;
    document.getElementById("main").focus();
  }

  function option(kind, text, address) {
    const line = h("li", { role: "option", "data-address": address }, h("span", { class: "dim" }, kind), h("span", {}, isolate(text)));
    line.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      go(address);
    });
    return line;
  }

  async function find() {
    const text = input.value.trim();
    const mine = (round += 1);
    if (!text) return close();
    const wanted = text.toLowerCase();
    const names = (store.nodes?.name ?? []).filter((name) => name.toLowerCase().includes(wanted)).slice(0, NODES);
    const nodes = names.map((name) => option("node", name, `#/node/${encodeURIComponent(name)}`));
    show(nodes);
    const answer = await ask(`pods?q=${encodeURIComponent(text)}&limit=${PODS}`).catch(() => ({ pods: [] }));
    if (mine !== round) return undefined;
    const pods = answer.pods.map(({ namespace, name }) =>
      option("pod", `${namespace}/${name}`, `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`));
    const both = [...nodes, ...pods];
    show(both.length ? both : [h("li", { role: "option", "aria-disabled": "true", class: "dim" }, "nothing found")]);
    return undefined;
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Escape") {
      event.stopPropagation();
      input.value = "";
      close();
      document.getElementById("main").focus();
    }
  });
  input.addEventListener("blur", () => close());
  input.form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (list.hidden) {
      clearTimeout(timer);
      await find();
    }
    const address = list.children[chosen]?.dataset.address;
    if (address) go(address);
  });
  return { focus: () => input.focus() };
}
