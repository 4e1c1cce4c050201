// A picture of grids: hover and focus highlight linked cells; arrows, Home and End move the focus; Enter selects, Esc clears.
// The content of cells (label, text, kind and links) is computed in Python.

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const DENSE = 24; // grids with more columns have small cells
const CALM_MS = 150; // browsers limit how often the address is written, and a dragged slider changes more often

function element(kind, classes, text) {
  const made = document.createElement(kind);
  made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
}

function withRole(made, role, label) {
  made.setAttribute("role", role);
  if (label) made.setAttribute("aria-label", label);
  return made;
}

function cellOf([row, column, text, label, kind, links]) {
  const made = withRole(element("div", `cell ${kind}`, text), "gridcell", label);
  made.setAttribute("aria-rowindex", row + 1);
  made.setAttribute("aria-colindex", column + 1);
  made.title = label;
  made.tabIndex = -1;
  return Object.assign(made, { place: [row, column], kind, links });
}

// Make an empty place: a gap in a grid, or the corner above the names of rows.
function gap() {
  const made = element("span", "gap");
  made.setAttribute("aria-hidden", "true");
  return made;
}

function headOf(grid) {
  const row = withRole(element("div", "row"), "row");
  row.append(gap());
  for (let c = 0; c < grid.columns; c++) {
    const name = grid.columnNames[c];
    row.append(name ? withRole(element("span", "name top", name), "columnheader") : gap());
  }
  return row;
}

function panelOf(grid) {
  const panel = element("section", grid.columns > DENSE ? "panel dense" : "panel");
  const table = withRole(element("div", "grid"), "grid", grid.title);
  table.dataset.name = grid.name;
  table.setAttribute("aria-rowcount", grid.rows);
  table.setAttribute("aria-colcount", grid.columns);
  table.style.gridTemplateColumns = `auto repeat(${grid.columns}, auto)`;
  if (grid.columnNames.length) table.append(headOf(grid));
  const rows = Array.from({ length: grid.rows }, () => []);
  for (const cell of grid.cells) rows[cell[0]].push(cell);
  rows.forEach((cells, r) => {
    const row = withRole(element("div", "row"), "row");
    row.append(grid.rowNames[r] ? withRole(element("span", "name", grid.rowNames[r]), "rowheader") : gap());
    let next = 0;
    for (const cell of cells) {
      for (; next < cell[1]; next++) row.append(gap());
      row.append(cellOf(cell));
      next = cell[1] + 1;
    }
    for (; next < grid.columns; next++) row.append(gap());
    table.append(row);
  });
  const scroll = element("div", "scroll");
  scroll.append(table);
  panel.append(element("h4", "", grid.title), scroll);
  return panel;
}

function legendItem([kind, words]) {
  const item = element("li", "");
  item.append(element("span", `swatch ${kind}`), words);
  return item;
}

// Return the cell of the grid to which a key moves the focus, skipping gaps; undefined at the edge.
function goal(cells, from, key, isWhole) {
  if (isWhole && key === "Home") return cells[0];
  if (isWhole && key === "End") return cells.at(-1);
  const [down, right] = MOVES[key] ?? [0, 0];
  const along = cells.filter((c) => (down ? c.place[1] === from.place[1] : c.place[0] === from.place[0]));
  if (key === "Home") return along[0];
  if (key === "End") return along.at(-1);
  return along[along.indexOf(from) + down + right];
}

// Let Tab reach this cell only. (Each grid has one such cell.)
function enterAt(cells, cell) {
  for (const other of cells) if (other.tabIndex === 0) other.tabIndex = -1;
  cell.tabIndex = 0;
}

// Return the cell of each grid that Tab reaches, and if it has the focus. A redrawn picture restores both.
function placesOf(host) {
  const found = new Map();
  const focused = host.getRootNode().activeElement;
  for (const table of host.querySelectorAll(".grid")) {
    const cell = table.querySelector(".cell[tabindex='0']");
    if (cell) found.set(table.dataset.name, { place: `${cell.place}`, hasFocus: cell === focused });
  }
  return found;
}

// The current step is a parameter of the address, so a copied link shows it. This needs no request to the server, and
// Streamlit preserves parameters that it did not write.
function stepIn(name) {
  const text = new URLSearchParams(location.search).get(name) ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

function keepStep(name, k) {
  const others = location.search.slice(1).split("&").filter((part) => part && !part.startsWith(`${name}=`));
  const search = (k ? [...others, `${name}=${k}`] : others).join("&");
  if (search === location.search.slice(1)) return;
  history.replaceState(history.state, "", location.pathname + (search && `?${search}`) + location.hash);
}

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector(".board");
  const sentence = root.querySelector(".sentence");
  const host = root.querySelector(".grids");
  const legend = root.querySelector(".legend");
  const before = placesOf(host);
  const scrolled = new Map([...host.querySelectorAll(".grid")].map((t) => [t.dataset.name, t.parentElement.scrollLeft]));

  host.replaceChildren(...data.grids.map(panelOf));
  legend.replaceChildren(...data.legend.map(legendItem));
  legend.hidden = data.legend.length === 0;
  const all = [...host.querySelectorAll(".cell")];
  const byLink = new Map();
  for (const cell of all)
    for (const link of cell.links) byLink.has(link) ? byLink.get(link).push(cell) : byLink.set(link, [cell]);

  let lit = [];
  const dim = () => {
    for (const cell of lit) cell.classList.remove("lit");
    lit = [];
  };
  const light = (cell) => {
    dim();
    lit = [...new Set(cell.links.flatMap((link) => byLink.get(link)))];
    for (const other of lit) other.classList.add("lit");
  };
  const pick = (link) => {
    root.chosen = link; // kept when the server sends a new picture
    for (const cell of all) {
      const isPicked = link !== null && cell.links.includes(link);
      cell.classList.toggle("picked", isPicked);
      cell.setAttribute("aria-selected", isPicked);
    }
  };
  const choose = (link) => {
    if (link === undefined || link === root.chosen) return;
    pick(link);
    setStateValue("chosen", link);
  };

  for (const table of host.querySelectorAll(".grid")) {
    table.parentElement.scrollLeft = scrolled.get(table.dataset.name) ?? 0;
    const cells = [...table.querySelectorAll(".cell")];
    if (!cells.length) continue;
    const kept = before.get(table.dataset.name);
    const start = cells.find((cell) => `${cell.place}` === kept?.place) ?? cells[0];
    enterAt(cells, start);
    table.addEventListener("focusin", (event) => {
      const cell = event.target.closest(".cell");
      if (!cell) return;
      enterAt(cells, cell);
      light(cell);
    });
    table.addEventListener("focusout", dim);
    table.onkeydown = (event) => {
      const from = event.target.closest(".cell");
      if (!from || event.altKey || event.metaKey) return;
      if (event.key in MOVES || event.key === "Home" || event.key === "End") {
        goal(cells, from, event.key, event.ctrlKey)?.focus();
      } else if (event.key === "Enter" || event.key === " ") {
        choose(from.links[0]);
      } else if (event.key === "Escape") {
        dim();
        choose(null);
      } else return;
      event.preventDefault();
    };
    // The grid was redrawn while a cell of it had the focus.
    if (kept?.hasFocus) start.focus({ preventScroll: true });
  }
  host.onmouseover = (event) => {
    const cell = event.target.closest(".cell");
    if (cell) light(cell);
  };
  host.onmouseleave = dim;
  host.onclick = (event) => {
    const cell = event.target.closest(".cell");
    if (cell) choose(cell.links[0]);
  };

  const last = data.frames.length - 1;
  const within = (k) => Math.min(k, Math.max(last, 0));
  const player = root.querySelector(".player");
  const [back, step, on] = [".back", ".step", ".on"].map((name) => player.querySelector(name));
  player.hidden = last < 0;
  step.max = Math.max(last, 0);
  const keep = (k) => {
    clearTimeout(root.keeping);
    const page = location.pathname; // another page may be open when the timer fires
    root.keeping = setTimeout(() => root.isConnected && location.pathname === page && keepStep(data.step, k), CALM_MS);
  };
  const show = (k) => {
    const frame = data.frames[k];
    const said = frame ? frame.sentence : data.sentence;
    if (sentence.textContent !== said) sentence.textContent = said; // a live region: setting an equal text would announce it again
    step.value = k;
    player.querySelector(".count").textContent = `${k + 1} of ${last + 1}`;
    step.setAttribute("aria-valuetext", `${k + 1} of ${last + 1}`);
    back.setAttribute("aria-disabled", k <= 0);
    on.setAttribute("aria-disabled", k >= last);
    const kinds = new Map(frame?.kinds);
    for (const cell of all) {
      const kind = cell.links.map((link) => kinds.get(link)).find((found) => found !== undefined) ?? cell.kind;
      cell.className = `cell ${kind}`;
    }
    for (const cell of lit) cell.classList.add("lit");
    pick(root.chosen ?? null);
    keep(k);
  };
  step.oninput = () => show(Number(step.value));
  back.onclick = () => show(Math.max(Number(step.value) - 1, 0));
  on.onclick = () => show(within(Number(step.value) + 1));
  const isNew = root.keeping === undefined; // the first picture of the page: its step is in the address
  show(within(isNew ? stepIn(data.step) : Number(step.value)));
}
