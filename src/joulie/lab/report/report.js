// Comforts only: everything on the page can be read without them.
"use strict";

for (const button of document.querySelectorAll("button[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copies);
    const named = button.textContent;
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected: copy it";
    }
    setTimeout(() => { button.textContent = named; }, 2000);
  });
}

// Paper cannot be unfolded.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details.pictures")) folded.open = true;
});

// Pointing at one variant makes the others of its figure pale.
for (const figure of document.querySelectorAll("figure")) {
  const drawn = figure.querySelectorAll("[data-series]");
  const show = (name) => {
    figure.classList.toggle("pointed", name !== undefined);
    for (const one of drawn) one.classList.toggle("meant", one.dataset.series === name);
  };
  figure.addEventListener("pointerover", (event) => show(event.target.closest("[data-series]")?.dataset.series));
  figure.addEventListener("pointerleave", () => show(undefined));
}

// Over time: the values where the pointer is. The plots say which places mean which values.
for (const figure of document.querySelectorAll("figure[id^=over-time]")) {
  const readout = document.createElement("p");
  readout.className = "readout";
  readout.textContent = "Point at a plot to read its values.";
  figure.querySelector(".plots").before(readout);
  for (const plot of figure.querySelectorAll(".plots svg")) {
    const [left, right, firstHour, lastHour] = plot.dataset.x.split(" ").map(Number);
    const [bottom, top, low, high] = plot.dataset.y.split(" ").map(Number);
    const lines = [...plot.querySelectorAll(".line")].map((line) => ({
      name: line.parentElement.dataset.series,
      points: line.getAttribute("d").slice(1).split("L").map((point) => point.split(" ").map(Number)),
    }));
    const title = plot.querySelector(".axis-title").textContent;
    const cursor = plot.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
    cursor.setAttribute("class", "cursor");
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const x = Math.min(right, Math.max(left, (event.clientX - box.left) * plot.viewBox.baseVal.width / box.width));
      const hour = firstHour + (x - left) / (right - left) * (lastHour - firstHour);
      const read = lines.filter(({ points }) => x <= points.at(-1)[0] + 2).map(({ name, points }) => {
        const [, y] = points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
        return `${name} ${(low + (bottom - y) / (bottom - top) * (high - low)).toFixed(1)}`;
      });
      readout.textContent = `${title} at ${hour.toFixed(1)} h: ${read.join(", ")}`;
      cursor.setAttribute("d", `M${x} ${top}V${bottom}`);
    });
    plot.addEventListener("pointerleave", () => cursor.removeAttribute("d"));
  }
}
