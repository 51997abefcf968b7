// Conveniences only: everything on the page can be read without this.
"use strict";

(() => {
  const svg = document.querySelector("svg.timeline");
  const data = document.getElementById("pointer");
  if (!svg || !data) return;
  const { left, right, seconds, width, rows } = JSON.parse(data.textContent);
  const cursor = svg.querySelector(".cursor");
  const reading = document.querySelector(".reading");
  const full = svg.viewBox.baseVal.width;
  let current = -1;

  function show(index) {
    current = Math.max(0, Math.min(rows.length - 1, index));
    const [t, acked, read, unknown, p50, p95, p99, max] = rows[current];
    const x = full * (left + ((right - left) * (t + width / 2)) / seconds);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.classList.add("on");
    const latency = p50 === undefined ? "nothing acknowledged" : `p50 ${p50} · p95 ${p95} · p99 ${p99} · max ${max}`;
    reading.textContent = `${t.toFixed(1)} s · ${acked} acked/s · ${read} read/s · ${unknown} unknown · ${latency}`;
  }

  if (!rows.length) return;
  reading.textContent = "Point at the plot, or use the arrow keys on it, to read it.";
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const t = ((share - left) / (right - left)) * seconds;
    let nearest = rows.findIndex((row) => row[0] + width > t);
    show(nearest < 0 ? rows.length - 1 : nearest);
  });
  svg.parentElement.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    show(current + by);
  });
})();

for (const command of document.querySelectorAll("pre.command")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command.querySelector("code").textContent);
    button.textContent = "Copied";
  });
  command.append(button);
}
