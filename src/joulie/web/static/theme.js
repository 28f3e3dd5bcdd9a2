// Before anything is painted: the theme that was chosen here last, else the system's.
"use strict";
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("joulie-theme");
  } catch { /* no storage, no memory */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
