"use strict";
for (const series of document.querySelectorAll(".series")) {
  const links = [...series.querySelectorAll(".hit")];
  const panel = series.querySelector(".panel");
  if (!panel) continue;
  const cursor = series.querySelector(".cursor");
  const steps = document.createElement("div");
  const button = (words, label, by) => {
    const made = document.createElement("button");
    made.textContent = words;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", () => show(at + by));
    steps.append(made);
    return made;
  };
  const earlier = button("‹", "earlier window", -1);
  const later = button("›", "later window", 1);
  let at = links.findIndex(link => link.getAttribute("href") === "#" + panel.dataset.shown);
  steps.className = "steps";
  panel.prepend(steps);

  const show = place => {
    at = Math.min(Math.max(place, 0), links.length - 1);
    const id = links[at].getAttribute("href").slice(1);
    const source = document.getElementById(id);
    if (panel.dataset.shown !== id) {
      panel.dataset.shown = id;
      panel.querySelector("h3").textContent = source.previousElementSibling.textContent;
      panel.querySelector(".body").replaceChildren(...source.cloneNode(true).childNodes);
    }
    links.forEach((link, number) => link.setAttribute("tabindex", number === at ? "0" : "-1"));
    const strip = links[at].firstElementChild;
    for (const name of ["x", "width"]) cursor.setAttribute(name, strip.getAttribute(name));
    earlier.disabled = at === 0;
    later.disabled = at === links.length - 1;
  };
  const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -7, PageDown: 7, Home: -Infinity, End: Infinity };
  links.forEach((link, number) => {
    link.addEventListener("click", event => { event.preventDefault(); show(number); });
    link.addEventListener("keydown", event => {
      if (!(event.key in moves)) return;
      event.preventDefault();
      show(at + moves[event.key]);
      links[at].focus({ preventScroll: true });
    });
  });
  show(at);

  const stored = series.querySelector(".heat-data");
  if (!stored) continue;
  const { titles, cells } = JSON.parse(stored.textContent);
  const map = series.querySelector(".cells svg");
  const frame = map.querySelector(".cell");
  const names = [...series.querySelectorAll(".heat li")].map(item => item.textContent);
  const readout = series.querySelector(".readout");
  let row = 0, column = titles.length - 1;
  const tenth = value => (value / 10).toFixed(1);
  const read = () => {
    frame.setAttribute("x", column);
    frame.setAttribute("y", row);
    frame.setAttribute("width", 1);
    const cell = cells[row][column];
    readout.textContent = cell
      ? `${names[row]}, ${titles[column]}: ${tenth(cell[0])} % (${tenth(cell[1])} to ${tenth(cell[2])} %) on ` +
        `${cell[3].toLocaleString("en")} rows`
      : `${names[row]}${titles[column] ? ", " + titles[column] : ""}: no rows`;
  };
  const bounded = (value, most) => Math.min(Math.max(value, 0), most - 1);
  const point = event => {
    const box = map.getBoundingClientRect();
    column = bounded(Math.floor((event.clientX - box.left) / box.width * titles.length), titles.length);
    row = bounded(Math.floor((event.clientY - box.top) / box.height * cells.length), cells.length);
    read();
  };
  map.setAttribute("tabindex", "0");
  map.addEventListener("pointermove", point);
  map.addEventListener("click", point);
  const turns = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  map.addEventListener("keydown", event => {
    if (!(event.key in turns)) return;
    event.preventDefault();
    row = bounded(row + turns[event.key][0], cells.length);
    column = bounded(column + turns[event.key][1], titles.length);
    read();
  });
}
