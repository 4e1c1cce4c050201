// Cells, edges, hulls and values that fly, in one SVG: all have the coordinates of the picture.

const SVG = "http://www.w3.org/2000/svg";
const TWEEN_MS = 240; // long enough to follow, short enough not to wait for
const TREE_GAP = 16; // rows this far apart leave room for edges
const ROW_GAP = 8; // cells of a row this far apart leave room for an arrow
const COLORED = ["", "load", "store", "shared", "other", "path", "race", "wrong", "idle", "chosen", "wasted"];

// What says the same as a color: load is a corner, store a bar below, shared a bar at the left, race a flash, wrong a line.
const MARKS = {
  load: (w, h) => `M1 1 h${h * 0.34} l${-h * 0.34} ${h * 0.34} z`,
  store: (w, h) => `M1 ${h - 1} v${-h * 0.15} h${w - 2} v${h * 0.15} z`,
  shared: (w, h) => `M1 1 h4 v${h - 2} h-4 z`,
  race: (w, h) => `M${w - 0.18 * h} 1 l${-h * 0.24} ${h * 0.24} h${h * 0.12} l${-h * 0.1} ${h * 0.2} l${h * 0.28} ${-h * 0.28} h${-h * 0.12} z`,
  wrong: (w, h) => `M3 ${h - 4.5} L${w - 4.5} 3 l1.5 1.5 L4.5 ${h - 3} z`,
};

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
  if (cell.said !== text) cell.said = cell.lastChild.textContent = text;
}

// Return a cell without place and texts, of which the cells of a grid are copies: to copy is faster than to draw each.
function drawEmptyCell({ cell: { width, height }, chars }) {
  const cell = draw(null, "g", { role: "gridcell", tabindex: -1 });
  draw(cell, "rect", { x: 1, y: 1, width: width - 2, height: height - 2, rx: 3 }).append(draw(null, "title"));
  draw(cell, "path", { class: "mark" });
  const size = Math.min(height * 0.44, (width - 5) / (chars * 0.61));
  draw(cell, "text", { x: width / 2, y: height / 2 + 0.5, style: `font-size:${size.toFixed(1)}px` });
  return cell;
}

function drawCell(row, empty, place, [r, c, text, label, kind, links, offset, tint]) {
  const box = { x: place.x + (offset ?? c) * place.pitch[0], y: place.y + r * place.pitch[1], ...place.cell };
  const cell = row.appendChild(empty.cloneNode(true));
  const names = { "aria-label": label, "aria-rowindex": r + 1, "aria-colindex": c + 1, transform: `translate(${box.x} ${box.y})` };
  for (const [name, value] of Object.entries(names)) cell.setAttribute(name, value);
  cell.firstChild.firstChild.textContent = label;
  Object.assign(cell, { place: [r, c], offset, origin: [place.x, place.y], pitch: place.pitch, kind, links, box, text, tint: tint ?? undefined });
  setCell(cell, kind, text, cell.tint);
  return cell;
}

function drawGrid(svg, place) {
  const { grid, x, y, cell, pitch } = place;
  const table = draw(svg, "g", { class: grid.drags ? "grid drags" : "grid", role: "grid", "aria-label": grid.title, "aria-rowcount": grid.rows, "aria-colcount": grid.columns });
  table.dataset.name = grid.name;
  const top = y - place.top + 13;
  place.lines.forEach((line, k) => draw(table, "text", { x: x - place.left, y: top + k * TITLE, class: "title", "aria-hidden": true }, line));
  if (grid.columnNames.some(Boolean)) {
    const head = draw(table, "g", { role: "row" });
    grid.columnNames.forEach((name, c) => name && draw(head, "text", { x: x + c * pitch[0] + cell.width / 2, y: y - 7, class: "name", role: "columnheader" }, name));
  }
  const empty = drawEmptyCell(place);
  const rows = Array.from({ length: grid.rows }, () => []);
  for (const one of grid.cells) rows[one[0]].push(one);
  rows.forEach((cells, r) => {
    const row = draw(table, "g", { role: "row" });
    if (grid.rowNames[r]) draw(row, "text", { x: x - 8, y: y + r * pitch[1] + cell.height / 2, class: "name end", role: "rowheader" }, grid.rowNames[r]);
    for (const one of cells) drawCell(row, empty, place, one);
  });
  return table;
}

// Return whether two boxes are apart along an axis.
function areApart(from, to, start, size) {
  return from[start] + from[size] <= to[start] || to[start] + to[size] <= from[start];
}

// Return the path of an edge, and the place and alignment of its text. In a grid of layers it goes from layer to layer, through
// each of its bends; in a row, below the cells that it would hide. Between two grids it goes down if one is above the other, and
// not beside it. Elsewhere it leaves and arrives at the sides that face each other.
function pathOf(from, to, bends = []) {
  if (from.body.grid !== to.body.grid) {
    const [isBeside, isAbove] = [areApart(from.body, to.body, "x", "width"), areApart(from.body, to.body, "y", "height")];
    return pathBetween(from.box, to.box, isAbove === isBeside ? undefined : isAbove);
  }
  if (from.place[0] !== to.place[0]) {
    const isTree = from.offset !== undefined || from.pitch[1] - from.box.height >= TREE_GAP;
    return from.offset !== undefined && bends.length ? pathOfLayers(from, to, bends) : pathBetween(from.box, to.box, isTree || undefined);
  }
  const apart = Math.abs(from.box.x - to.box.x) - from.box.width;
  return apart < ROW_GAP || apart > from.pitch[0] ? arcBelow(from.box, to.box) : pathBetween(from.box, to.box);
}

// Return the path of an edge that skips layers: straight through each of its bends.
function pathOfLayers(from, to, bends) {
  const isDown = from.place[0] < to.place[0];
  const stop = (row, offset) => {
    const [x, y] = [from.origin[0] + offset * from.pitch[0] + from.box.width / 2, from.origin[1] + row * from.pitch[1]];
    return isDown ? [x, y, y + from.box.height] : [x, y + from.box.height, y];
  };
  const stops = [stop(from.place[0], from.offset), ...bends.map(([row, offset]) => stop(row, offset)), stop(to.place[0], to.offset)];
  let d = `M${stops[0][0]} ${stops[0][2]}`;
  for (let k = 1; k < stops.length; k++) {
    const [[x, , y], [u, v, w]] = [stops[k - 1], stops[k]];
    d += ` C${x} ${(y + v) / 2} ${u} ${(y + v) / 2} ${u} ${v}` + (k < stops.length - 1 ? ` L${u} ${w}` : "");
  }
  const k = stops.length >> 1; // the middle of the middle piece
  return [d, [(stops[k - 1][0] + stops[k][0]) / 2 + 7, (stops[k - 1][2] + stops[k][1]) / 2], "note start"];
}

// Return an arc below a row, from one box to another, and its lowest point: wider arcs are deeper.
function arcBelow(from, to) {
  const [x, u] = [from, to].map((box) => box.x + box.width / 2);
  const y = from.y + from.height;
  const depth = Math.min(10 + Math.abs(u - x) / 12, 24);
  return [`M${x} ${y} C${x} ${y + depth * 1.3} ${u} ${y + depth * 1.3} ${u} ${y}`, [(x + u) / 2, y + depth]];
}

// Return the path from one box to another, and its middle: down or up, or sideways; by default between the nearest sides.
function pathBetween(from, to, isStacked) {
  const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const [[x, y], [u, v]] = [middle(from), middle(to)];
  const isDown = isStacked ?? Math.abs(v - y) - (from.height + to.height) / 2 >= Math.abs(u - x) - (from.width + to.width) / 2;
  const side = (p, q, size) => p + (Math.sign(q - p) * size) / 2;
  if (isDown) {
    const [a, b] = [side(y, v, from.height), side(v, y, to.height)];
    return [`M${x} ${a} C${x} ${(a + b) / 2} ${u} ${(a + b) / 2} ${u} ${b}`, [(x + u) / 2, (a + b) / 2]];
  }
  const [a, b] = [side(x, u, from.width), side(u, x, to.width)];
  return [`M${a} ${y} C${(a + b) / 2} ${y} ${(a + b) / 2} ${v} ${b} ${v}`, [(a + b) / 2, (y + v) / 2]];
}

// The overlay of edges and hulls. Those that stay between two steps stay; those that are new draw themselves.
class Overlay {
  constructor(svg, find) {
    Object.assign(this, { find, known: new Map(), areas: draw(null, "g", { "aria-hidden": true }) });
    this.hits = draw(null, "g", { "aria-hidden": true }); // wide and invisible, so that a thin arrow can be pointed at
    svg.querySelector("defs").after(this.areas, this.hits); // below the cells
    [this.hulls, this.edges] = [draw(svg, "g", { "aria-hidden": true }), draw(svg, "g", { "aria-hidden": true })];
  }

  show(edges, hulls, moves) {
    const now = new Map();
    for (const edge of edges) this.keep(now, JSON.stringify(edge), () => this.drawEdge(edge, moves));
    for (const hull of hulls) this.keep(now, JSON.stringify(hull), () => (hull[5] ? this.drawArea(hull, edges) : this.drawHull(hull)));
    for (const [key, made] of this.known) if (!now.has(key)) made.remove();
    this.known = now;
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
    this.edges.classList.toggle("pointing", cells.size > 0);
    for (const { ends, made } of this.arrows) made.classList.toggle("lit", ends.every((end) => cells.has(end)));
  }

  keep(now, key, make) {
    now.set(key, this.known.get(key) ?? make());
  }

  drawEdge([start, end, kind, text, bends], moves) {
    const made = draw(this.edges, "g");
    const ends = [this.find(start), this.find(end)];
    const [d, [x, y], words = "note"] = pathOf(...ends, bends);
    const hit = Object.assign(draw(this.hits, "path", { d, class: "hit" }), { ends });
    draw(made, "path", { d, class: "halo" });
    const line = draw(made, "path", { d, class: `edge ${kind}`, pathLength: 1, "marker-end": `url(#head-${kind})` });
    if (text) draw(made, "text", { x, y, class: words }, text);
    if (moves && !isCalm()) {
      const dashes = (offset) => ({ strokeDasharray: "1 1", strokeDashoffset: offset });
      line.animate([dashes(1), dashes(0)], { duration: TWEEN_MS, easing: "ease-out" });
    }
    return { made, ends, remove: () => [made, hit].forEach((part) => part.remove()) };
  }

  // Draw an outline around cells and the edges between them: thick lines, and thinner lines of the inner color over them.
  drawArea([start, , , kind, text, around], edges) {
    const made = draw(this.areas, "g");
    const inside = new Set([start, ...around].map(String));
    const boxes = [...inside].map((place) => this.find(place.split(",")).box);
    const paths = edges.filter(([a, b]) => inside.has(`${a}`) && inside.has(`${b}`)).map(([a, b, , , bends]) => pathOf(this.find(a), this.find(b), bends)[0]);
    for (const [part, thick, room] of [["rim", 18, 7], ["inner", 14, 5]]) {
      const layer = draw(made, "g", { class: `area ${kind} ${part}` });
      for (const d of paths) draw(layer, "path", { d, "stroke-width": thick });
      for (const { x, y, width, height } of boxes) draw(layer, "rect", { x: x - room, y: y - room, width: width + 2 * room, height: height + 2 * room, rx: room });
    }
    const { box } = this.find(start);
    const label = text ? draw(this.edges, "text", { x: box.x - 6, y: box.y - 9, class: "note start" }, text) : null; // above edges
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
