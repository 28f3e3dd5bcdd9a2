// Puts the page together: which view is shown, the keys, the theme, and whether what is shown is live.

import { h, isolate, say } from "./dom.js";
import { clockTime } from "./format.js";
import { MODES } from "./palette.js";
import { nodePage } from "./node.js";
import { overview } from "./overview.js";
import { podPage } from "./pod.js";
import { searchBox } from "./search.js";
import { connect, store, subscribe } from "./store.js";

const main = document.getElementById("main");
const help = document.getElementById("help");
const live = document.getElementById("live");
const search = searchBox(store);
const waiting = h("p", { class: "waiting dim" }, "Reading the cluster …");
let view = null;
let overviewAt = 0; // how far the overview was scrolled

const openNode = (name) => { location.hash = `#/node/${encodeURIComponent(name)}`; };

function viewFor(hash) {
  const [kind, ...names] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (kind === "node" && names.length === 1) return nodePage(store, names[0]);
  if (kind === "pod" && names.length === 2) return podPage(store, names[0], names[1]);
  return overview(store, openNode);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route() {
  if (location.hash === "#main") return; // the skip link
  const before = view;
  if (before?.colourBy) overviewAt = scrollY;
  before?.end();
  view = viewFor(location.hash);
  main.replaceChildren(...(store.cluster ? [] : [waiting]), view.root);
  view.update(null);
  writeTitle();
  if (before) {
    scrollTo(0, view.colourBy ? overviewAt : 0);
    if (view.focus.tagName === "H1") view.focus.tabIndex = -1;
    view.focus.focus({ preventScroll: true });
  }
}

function writeTitle() {
  const cluster = store.cluster?.facts.cluster;
  document.title = [view.title, cluster, "Joulie"].filter(Boolean).join(" · ");
}

function writeHeader() {
  const facts = store.cluster?.facts;
  if (facts) {
    say(document.getElementById("cluster-name"), facts.cluster ? isolate(facts.cluster) : "");
    say(document.getElementById("leader"), facts.leader ? `leader ${isolate(facts.leader)}` : "no leader");
  }
  if (store.cluster) say(document.getElementById("clock"), clockTime(store.cluster.nowS, true));
  live.dataset.live = String(store.live);
  say(live.lastElementChild, store.live ? "live" : store.cluster ? "not live, reconnecting" : "connecting");
  document.body.classList.toggle("stale", Boolean(store.cluster) && !store.live);
}

function toggleTheme() {
  const root = document.documentElement;
  const dark = getComputedStyle(root).colorScheme === "dark" || (root.dataset.theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("joulie-theme", root.dataset.theme);
  } catch { /* then it lasts as long as the page */ }
  view.repaint();
}

document.getElementById("theme").addEventListener("click", toggleTheme);
document.getElementById("ask").addEventListener("click", () => help.showModal());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view?.repaint());

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.target.closest?.("input, textarea, select")) return;
  const mode = Object.keys(MODES)[Number(event.key) - 1];
  if (event.key === "/") {
    event.preventDefault();
    search.focus();
  } else if (event.key === "?") help.showModal();
  else if (event.key === "t") toggleTheme();
  else if (event.key === "Escape" && location.hash.length > 2) location.hash = "#/";
  else if (mode && view.colourBy) view.colourBy(mode);
});

addEventListener("hashchange", route);
subscribe((changes) => {
  writeHeader();
  if (changes === null) {
    waiting.remove();
    writeTitle();
  }
  view.update(changes);
});
route();
connect();
