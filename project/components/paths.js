// Where arrows and the notes on them lie. All boxes have the coordinates of the picture.

const TREE_GAP = 16; // rows this far apart leave room for edges
const ROW_GAP = 8; // cells of a row this far apart leave room for an arrow
const CHANNEL = 12; // from grids to an arrow below them
const CORNER = 8; // radius
const SHIFTS = [0, 0.34, -0.34]; // from the middle of a cell to an arrow, in widths of the cell
const SAMPLE = 4; // between two points of a path that are looked at
const [TITLE_CHAR, NAME_CHAR, NOTE_CHAR, CELL_CHAR] = [7, 6.4, 6.2, 0.61]; // widths of a character; that of a cell, in font sizes
const NOTE_HEIGHT = 16;
const TIP = 4; // points of a path: its head, which stays whole over the name of the column that it enters
const NEAR = 7; // from an arrow to a note beside it
const ALONG = [0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8, 0.14, 0.86]; // where on its arrow a note may be, the best first

// Return whether two boxes are apart along an axis.
function areApart(from, to, start, size) {
  return from[start] + from[size] <= to[start] || to[start] + to[size] <= from[start];
}

function overlap(one, other) {
  return !areApart(one, other, "x", "width") && !areApart(one, other, "y", "height");
}

// Return the box around the text of a cell.
function textBox({ box, said, fontSize }) {
  const lines = said.split("\n");
  const [width, height] = [Math.max(...lines.map((line) => line.length)) * CELL_CHAR * fontSize, lines.length * LINE_HEIGHT * fontSize];
  return { x: box.x + (box.width - width) / 2, y: box.y + (box.height - height) / 2, width, height };
}

// Return the paths that an edge may take, the usual one first: each with its shape, the place of its note, and whether the
// note is beside that place. In a grid of layers an edge goes from layer to layer, through each of its bends; in a row, below
// the cells that it would hide. Between two grids it goes down if one is above the other; if they are beside one another, it
// goes from side to side, or below both. Elsewhere it leaves and arrives at the sides that face each other. Down or up, it may
// pass beside the middle of a column, where the numbers are.
function pathsOf(from, to, bends = []) {
  if (from.body.grid !== to.body.grid) {
    const [isBeside, isAbove] = [areApart(from.body, to.body, "x", "width"), areApart(from.body, to.body, "y", "height")];
    const usual = SHIFTS.map((shift) => pathBetween(from.box, to.box, isAbove === isBeside ? undefined : isAbove, shift));
    return isBeside && !isAbove ? [usual[0], ...SHIFTS.map((shift) => pathBelow(from, to, shift))] : usual;
  }
  if (from.place[0] !== to.place[0]) {
    const isTree = from.offset !== undefined || from.pitch[1] - from.box.height >= TREE_GAP;
    return [from.offset !== undefined && bends.length ? pathOfLayers(from, to, bends) : pathBetween(from.box, to.box, isTree || undefined)];
  }
  const apart = Math.abs(from.box.x - to.box.x) - from.box.width;
  return [apart < ROW_GAP || apart > from.pitch[0] - ROW_GAP ? arcBelow(from.box, to.box) : pathBetween(from.box, to.box)];
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
  return { d, middle: [(stops[k - 1][0] + stops[k][0]) / 2, (stops[k - 1][2] + stops[k][1]) / 2], isBeside: true };
}

// Return an arc below a row, from one box to another, and its lowest point: wider arcs are deeper.
function arcBelow(from, to) {
  const [x, u] = [from, to].map((box) => box.x + box.width / 2);
  const y = from.y + from.height;
  const depth = Math.min(10 + Math.abs(u - x) / 12, 24);
  return { d: `M${x} ${y} C${x} ${y + depth * 1.3} ${u} ${y + depth * 1.3} ${u} ${y}`, middle: [(x + u) / 2, y + depth] };
}

// Return the path from one box to another, and its middle: down or up, or sideways; by default between the nearest sides.
function pathBetween(from, to, isStacked, shift = 0) {
  const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const [[x, y], [u, v]] = [middle(from), middle(to)];
  const isDown = isStacked ?? Math.abs(v - y) - (from.height + to.height) / 2 >= Math.abs(u - x) - (from.width + to.width) / 2;
  const side = (p, q, size) => p + (Math.sign(q - p) * size) / 2;
  if (isDown) {
    const [a, b] = [side(y, v, from.height), side(v, y, to.height)];
    const [p, q] = [x + shift * from.width, u + shift * to.width];
    return { d: `M${p} ${a} C${p} ${(a + b) / 2} ${q} ${(a + b) / 2} ${q} ${b}`, middle: [(p + q) / 2, (a + b) / 2] };
  }
  const [a, b] = [side(x, u, from.width), side(u, x, to.width)];
  return { d: `M${a} ${y} C${(a + b) / 2} ${y} ${(a + b) / 2} ${v} ${b} ${v}`, middle: [(a + b) / 2, (y + v) / 2] };
}

// Return the path that leaves a grid downward, and enters another one from below.
function pathBelow(from, to, shift) {
  const [[x, y], [u, v]] = [from, to].map(({ box }) => [box.x + box.width * (0.5 + shift), box.y + box.height]);
  const bottom = Math.max(...[from, to].map(({ body }) => body.y + body.height)) + CHANNEL;
  const turn = Math.sign(u - x) * CORNER;
  const down = `M${x} ${y} V${bottom - CORNER} Q${x} ${bottom} ${x + turn} ${bottom}`;
  return { d: `${down} H${u - turn} Q${u} ${bottom} ${u} ${bottom - CORNER} V${v}`, middle: [(x + u) / 2, bottom] };
}

// Return points along a path.
function pointsOf(d) {
  const path = draw(null, "path", { d });
  const length = path.getTotalLength();
  const count = Math.max(Math.ceil(length / SAMPLE), TIP + 1);
  return Array.from({ length: count + 1 }, (_, k) => path.getPointAtLength((k / count) * length));
}

// Return the boxes through which a path leads.
function crossedBoxes(points, boxes) {
  const [[x, u], [y, v]] = ["x", "y"].map((axis) => points.map((point) => point[axis])).map((all) => [Math.min(...all), Math.max(...all)]);
  const near = boxes.filter((box) => overlap(grow(box), { x, y, width: u - x, height: v - y }));
  return near.filter((box) => points.some(({ x, y }) => overlap(grow(box), { x, y, width: 0, height: 0 })));
}

// Return a box with the room that a line and its end need.
function grow({ x, y, width, height }) {
  return { x: x - 2, y: y - 2, width: width + 4, height: height + 4 };
}

// Return the path that crosses out the fewest texts, with its points.
function clearestPath(paths, texts) {
  const found = paths.map((path) => ({ ...path, points: pointsOf(path.d) }));
  const counts = found.map(({ points }) => (paths.length > 1 ? crossedBoxes(points, texts).length : 0));
  return found[counts.indexOf(Math.min(...counts))];
}

// Return the box of the note of an arrow, with the place of its text and the class for how it is aligned there: on the arrow, or
// to its right or left, inside of the picture, and free of the first of these sets of boxes for which there is room.
function placeNote({ text, middle, points, isBeside }, obstacles, pictureWidth) {
  const width = text.length * NOTE_CHAR + 4;
  const room = (at, y, side, left) => ({ at, y: y - NOTE_HEIGHT / 2, side, x: left, width, height: NOTE_HEIGHT });
  const on = ([x, y]) => room(x, y, "", x - width / 2);
  const right = ([x, y]) => room(x + NEAR, y, "after", x + NEAR - 2);
  const left = ([x, y]) => room(x - NEAR, y, "end", x - NEAR + 2 - width);
  const places = [middle, ...ALONG.map((part) => points[Math.round(part * (points.length - 1))]).map(({ x, y }) => [x, y])];
  const rooms = (isBeside ? [right, left] : [on, right, left]).flatMap((side) => places.map(side));
  const isFree = (boxes) => (one) => one.x >= 0 && one.x + width <= pictureWidth && !boxes.some((box) => overlap(one, box));
  return obstacles.map((boxes) => rooms.find(isFree(boxes))).find(Boolean) ?? rooms[0];
}
