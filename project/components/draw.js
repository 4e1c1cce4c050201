// Cells, edges, hulls and values that fly, in one SVG: all have the coordinates of the picture.

const SVG = "http://www.w3.org/2000/svg";
const TWEEN_MS = 240; // long enough to follow, short enough not to wait for
const LINE_HEIGHT = 1.2; // of a text of several lines, in font sizes
const COLORED = ["", "load", "store", "shared", "other", "path", "race", "wrong", "idle", "chosen", "wasted"];

// What says the same as a color: load is a corner, store a bar below, shared a bar at the left, race a flash, wrong a line.
const MARKS = {
  load: (w, h) => `M1 1 h${lineOf(h) * 0.34} l${-lineOf(h) * 0.34} ${lineOf(h) * 0.34} z`,
  store: (w, h) => `M1 ${h - 1} v${-lineOf(h) * 0.15} h${w - 2} v${lineOf(h) * 0.15} z`,
  shared: (w, h) => `M1 1 h4 v${h - 2} h-4 z`,
  race: (w, h) => `M${w - 0.18 * h} 1 l${-h * 0.24} ${h * 0.24} h${h * 0.12} l${-h * 0.1} ${h * 0.2} l${h * 0.28} ${-h * 0.28} h${-h * 0.12} z`,
  wrong: (w, h) => `M3 ${h - 4.5} L${w - 4.5} 3 l1.5 1.5 L4.5 ${h - 3} z`,
};

// Return the height that a cell of one line would have.
function lineOf(height) {
  return Math.min(height, ROOMY);
}

function draw(parent, tag, attributes = {}, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

function isCalm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// Draw what cells and arrows refer to. Ids are local to the shadow root.
function drawDefinitions(svg) {
  const definitions = draw(svg, "defs");
  for (const [id, line] of [["hatch", "var(--soft)"], ["hatch-load", "var(--load)"]]) {
    const hatch = draw(definitions, "pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    draw(hatch, "rect", { width: 1.7, height: 6, fill: line });
  }
  for (const kind of COLORED) {
    const size = { markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" };
    const head = draw(definitions, "marker", { id: `head-${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, ...size });
    draw(head, "path", { d: "M0 0.5 L8 4 L0 7.5 z", class: `head ${kind}` });
  }
}

function setCell(cell, kind, text, tint) {
  if (cell.shown !== kind) {
    cell.setAttribute("class", ["cell", kind, ...["lit", "picked", "tinted"].filter((name) => cell.classList.contains(name))].join(" "));
    cell.shown = kind;
    cell.children[1].setAttribute("d", MARKS[kind]?.(cell.box.width, cell.box.height) ?? "");
  }
  if (cell.tinted !== tint) {
    cell.tinted = tint;
    cell.classList.toggle("tinted", tint !== undefined);
    cell.style.setProperty("--tint", tint ?? "");
  }
  if (cell.said !== text) setText(cell, text);
}

// Write a text into a cell: one line, or several in its middle.
function setText(cell, text) {
  cell.said = text;
  const words = cell.lastChild;
  const lines = text.split("\n");
  words.textContent = lines.length > 1 ? "" : text;
  if (lines.length === 1) return;
  const [x, middle] = ["x", "y"].map((name) => Number(words.getAttribute(name)));
  lines.forEach((line, k) => draw(words, "tspan", { x, y: middle + (k - (lines.length - 1) / 2) * LINE_HEIGHT * cell.fontSize }, line));
}

// Return a cell without place and texts, of which the cells of a grid are copies: to copy is faster than to draw each.
function drawEmptyCell({ cell: { width, height }, fontSize }) {
  const cell = draw(null, "g", { role: "gridcell", tabindex: -1 });
  draw(cell, "rect", { x: 1, y: 1, width: width - 2, height: height - 2, rx: 3 }).append(draw(null, "title"));
  draw(cell, "path", { class: "mark" });
  draw(cell, "text", { x: width / 2, y: height / 2 + 0.5, style: `font-size:${fontSize.toFixed(1)}px` });
  return cell;
}

function drawCell(row, empty, place, [r, c, text, label, kind, links, offset, tint]) {
  const box = { x: place.x + (offset ?? c) * place.pitch[0], y: place.y + r * place.pitch[1], ...place.cell };
  const cell = row.appendChild(empty.cloneNode(true));
  const names = { "aria-label": label, "aria-rowindex": r + 1, "aria-colindex": c + 1, transform: `translate(${box.x} ${box.y})` };
  for (const [name, value] of Object.entries(names)) cell.setAttribute(name, value);
  cell.firstChild.firstChild.textContent = label;
  Object.assign(cell, { place: [r, c], offset, origin: [place.x, place.y], pitch: place.pitch, kind, links, box, text, tint: tint ?? undefined, fontSize: place.fontSize });
  setCell(cell, kind, text, cell.tint);
  return cell;
}

function drawGrid(svg, place) {
  const { grid, x, y, cell, pitch } = place;
  const table = draw(svg, "g", { class: grid.drags ? "grid drags" : "grid", role: "grid", "aria-label": grid.title, "aria-rowcount": grid.rows, "aria-colcount": grid.columns });
  table.dataset.name = grid.name;
  const top = y - place.top + 13;
  const names = (table.names = []); // the boxes of title and names, around which arrows are interrupted
  place.lines.forEach((line, k) => {
    draw(table, "text", { x: x - place.left, y: top + k * TITLE, class: "title", "aria-hidden": true }, line);
    names.push({ x: x - place.left, y: top + k * TITLE - 12, width: line.length * TITLE_CHAR, height: 16 });
  });
  if (grid.columnNames.some(Boolean)) {
    const head = draw(table, "g", { role: "row" });
    grid.columnNames.forEach((name, c) => {
      if (!name) return;
      const [middle, width] = [x + c * pitch[0] + cell.width / 2, name.length * NAME_CHAR];
      draw(head, "text", { x: middle, y: y - 7, class: "name", role: "columnheader" }, name);
      names.push({ x: middle - width / 2, y: y - 14, width, height: 14 });
    });
  }
  const empty = drawEmptyCell(place);
  const rows = Array.from({ length: grid.rows }, () => []);
  for (const one of grid.cells) rows[one[0]].push(one);
  rows.forEach((cells, r) => {
    const row = draw(table, "g", { role: "row" });
    if (grid.rowNames[r]) {
      const [end, middle, width] = [x - 8, y + r * pitch[1] + cell.height / 2, grid.rowNames[r].length * NAME_CHAR];
      draw(row, "text", { x: end, y: middle, class: "name end", role: "rowheader" }, grid.rowNames[r]);
      names.push({ x: end - width, y: middle - 7, width, height: 14 });
    }
    for (const one of cells) drawCell(row, empty, place, one);
  });
  return table;
}

// The overlay of edges and hulls. Those that stay between two steps stay; those that are new draw themselves. Edges are above
// the cells, and interrupted where they would cross out a text.
class Overlay {
  constructor(svg, find, cells) {
    const names = [...svg.querySelectorAll(".grid")].flatMap((table) => table.names);
    Object.assign(this, { find, cells, names, known: new Map(), areas: draw(null, "g", { "aria-hidden": true }) });
    this.hits = draw(null, "g", { "aria-hidden": true }); // wide and invisible, so that a thin arrow can be pointed at
    svg.querySelector("defs").after(this.areas, this.hits); // below the cells
    const { width, height } = svg.viewBox.baseVal;
    const mask = draw(svg.querySelector("defs"), "mask", { id: "texts", maskUnits: "userSpaceOnUse", x: 0, y: 0, width, height });
    draw(mask, "rect", { width, height, fill: "#fff" });
    this.width = width;
    this.holes = draw(mask, "path", { fill: "#000" });
    [this.hulls, this.edges, this.notes] = [{}, { mask: "url(#texts)" }, {}].map((others) => draw(svg, "g", { "aria-hidden": true, ...others }));
  }

  show(edges, hulls, moves) {
    const texts = [...this.names, ...this.cells.filter((cell) => cell.said).map(textBox)];
    const wanted = edges.map((edge) => [edge, () => this.drawEdge(edge, texts, moves)]);
    wanted.push(...hulls.map((hull) => [hull, () => (hull[5] ? this.drawArea(hull, edges) : this.drawHull(hull))]));
    const makes = new Map(wanted.map(([one, make]) => [JSON.stringify(one), make]));
    for (const [key, made] of this.known) if (!makes.has(key)) made.remove();
    this.known = new Map([...makes].map(([key, make]) => [key, this.known.get(key) ?? make()]));
    const bare = this.arrows.filter(({ text, room }) => text && !room);
    for (const arrow of bare.sort((one, other) => one.text.length - other.text.length)) this.drawNote(arrow, texts);
    const crossed = new Set(this.arrows.flatMap(({ points }) => crossedBoxes(points.slice(0, -TIP), texts)));
    this.holes.setAttribute("d", [...crossed].map(({ x, y, width, height }) => `M${x} ${y}h${width}v${height}h${-width}z`).join(""));
  }

  // Return all arrows that are shown.
  get arrows() {
    return [...this.known.values()].filter((made) => made.ends);
  }

  // Return the cells from which arrows lead to a cell, however many steps away, and those to which its own arrows point.
  neighbors(cell) {
    const { arrows } = this;
    const found = new Set([cell]); // grows while it is walked
    for (const end of found) for (const { ends } of arrows) if (ends[1] === end) found.add(ends[0]);
    return [...found, ...arrows.filter(({ ends }) => ends[0] === cell).map(({ ends }) => ends[1])];
  }

  // Light the arrows between these cells; without cells, none.
  light(cells) {
    for (const layer of [this.edges, this.notes]) layer.classList.toggle("pointing", cells.size > 0);
    for (const { ends, parts } of this.arrows) for (const part of parts) part.classList.toggle("lit", ends.every((end) => cells.has(end)));
  }

  drawEdge([start, end, kind, text, bends], texts, moves) {
    const made = draw(this.edges, "g");
    const ends = [this.find(start), this.find(end)];
    const { d, ...path } = clearestPath(pathsOf(...ends, bends), texts);
    const hit = Object.assign(draw(this.hits, "path", { d, class: "hit" }), { ends });
    draw(made, "path", { d, class: "halo" });
    const line = draw(made, "path", { d, class: `edge ${kind}`, pathLength: 1, "marker-end": `url(#head-${kind})` });
    if (moves && !isCalm()) {
      const dashes = (offset) => ({ strokeDasharray: "1 1", strokeDashoffset: offset });
      line.animate([dashes(1), dashes(0)], { duration: TWEEN_MS, easing: "ease-out" });
    }
    const parts = [made];
    return { ...path, ends, text, parts, remove: () => [...parts, hit].forEach((part) => part.remove()) };
  }

  // Draw the note of an arrow where there is room: where no cell, name or other note is, or else no text.
  drawNote(arrow, texts) {
    const notes = this.arrows.map(({ room }) => room).filter(Boolean);
    const taken = [...notes, ...texts];
    const room = (arrow.room = placeNote(arrow, [[...taken, ...this.cells.map(({ box }) => box)], taken], this.width));
    const note = draw(this.notes, "g");
    draw(note, "text", { x: room.at, y: room.y + room.height / 2, class: `note on-edge ${room.side}` }, arrow.text);
    arrow.parts.push(note);
  }

  // Draw an outline around cells and the edges between them: thick lines, and thinner lines of the inner color over them.
  drawArea([start, , , kind, text, around], edges) {
    const made = draw(this.areas, "g");
    const inside = new Set([start, ...around].map(String));
    const boxes = [...inside].map((place) => this.find(place.split(",")).box);
    const paths = edges.filter(([a, b]) => inside.has(`${a}`) && inside.has(`${b}`)).map(([a, b, , , bends]) => pathsOf(this.find(a), this.find(b), bends)[0].d);
    for (const [part, thick, room] of [["rim", 18, 7], ["inner", 14, 5]]) {
      const layer = draw(made, "g", { class: `area ${kind} ${part}` });
      for (const d of paths) draw(layer, "path", { d, "stroke-width": thick });
      for (const { x, y, width, height } of boxes) draw(layer, "rect", { x: x - room, y: y - room, width: width + 2 * room, height: height + 2 * room, rx: room });
    }
    const { box } = this.find(start);
    const label = text ? draw(this.notes, "text", { x: box.x - 6, y: box.y - 9, class: "note start" }, text) : null; // above edges
    return { remove: () => [made, label].forEach((part) => part?.remove()) };
  }

  drawHull([start, rows, columns, kind, text]) {
    const { box, pitch } = this.find(start);
    const made = draw(this.hulls, "g");
    const [width, height] = [(columns - 1) * pitch[0] + box.width, (rows - 1) * pitch[1] + box.height];
    draw(made, "rect", { x: box.x - 1, y: box.y - 1, width: width + 2, height: height + 2, rx: 5, class: `hull ${kind}` });
    if (text) draw(made, "text", { x: box.x + 2, y: box.y - 6, class: "note start" }, text);
    return made;
  }
}

// Let values fly from one cell to another.
function fly(svg, flights, find) {
  if (isCalm()) return;
  for (const [start, end, kind, text] of flights) {
    const [from, to] = [find(start).box, find(end).box];
    const token = draw(svg, "g", { class: `cell flying ${kind}`, "aria-hidden": true });
    draw(token, "rect", { width: from.width, height: from.height, rx: 4 });
    draw(token, "text", { x: from.width / 2, y: from.height / 2, style: `font-size:${(from.height * 0.44).toFixed(1)}px` }, text);
    const at = ({ x, y }) => ({ transform: `translate(${x}px, ${y}px)` });
    token.animate([at(from), at(to)], { duration: TWEEN_MS, easing: "cubic-bezier(.4,0,.2,1)" }).finished.then(() => token.remove());
  }
}
