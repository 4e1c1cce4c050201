// Where the grids of a picture lie. All sizes are in the units of the picture, which is then scaled to fit the window.

const TITLE = 19; // height of a line of a title
const NAMES = 18; // height of the names of columns
const GUTTER = 30; // between two grids
const MARGIN = 8; // around the picture
const DENSE = 24; // grids with more columns have small cells
const TALL = 12; // grids with more rows, and no room between them, have low cells
const [ROOMY, LOW] = [34, 24]; // heights of cells
const CHAR = 7.6; // width of a character in a cell
const MORE = 0.5; // height of each line after the first in a cell, in heights of a cell
const LARGEST = 1.6; // pixels of a unit, at most
const LARGEST_FULL = 3; // and at most on the whole screen, to be read from the last row of a room
const SMALLEST = 0.6; // and at least: smaller texts cannot be read, so the picture scrolls

// Return how long the longest line is, and how many lines there are, of the texts of a grid in all steps.
function measureTexts(grid, frames) {
  const links = new Set(grid.cells.flatMap((cell) => cell[5]));
  const size = { chars: 1, lines: 1 };
  const measure = (text) => {
    const lines = text.split("\n");
    size.lines = Math.max(size.lines, lines.length);
    for (const line of lines) size.chars = Math.max(size.chars, line.length);
  };
  for (const cell of grid.cells) measure(cell[2]);
  for (const frame of frames) for (const [link, text] of frame.texts ?? []) if (links.has(link)) measure(text);
  return size;
}

// Break a text into lines of at most so many units.
function wrapWords(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (lines.at(-1) && longer.length * 7 > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

// Return the sizes of a grid: of a cell, of the body, and of what stands above it and to its left.
function measureGrid(grid, { chars, lines: count }, isTight) {
  const isDense = isTight || grid.columns > DENSE;
  const [least, air, char] = isTight && grid.columns > DENSE ? [14, 3, 6.2] : isDense ? [20, 7, 6.5] : [36, 12, CHAR];
  const [gapX, gapY] = grid.gaps ?? [0, 0];
  const line = isDense || (grid.rows > TALL && !gapY) ? LOW : ROOMY;
  const cell = { width: Math.max(least, air + chars * char), height: line * (1 + (count - 1) * MORE) };
  const fontSize = Math.min(line * 0.44, (cell.width - 5) / (chars * CELL_CHAR));
  const width = Math.max(0, ...grid.cells.map((c) => c[6] ?? c[1]), grid.columns - 1) * (cell.width + gapX) + cell.width;
  const height = (grid.rows - 1) * (cell.height + gapY) + cell.height;
  const left = Math.max(0, ...grid.rowNames.map((name) => name.length * 6.6 + 10));
  const lines = wrapWords(grid.title, Math.max(left + width, 230));
  const top = lines.length * TITLE + (grid.columnNames.some(Boolean) ? NAMES : 6);
  const titleWidth = Math.max(...lines.map((line) => line.length * 7));
  return { grid, cell, pitch: [cell.width + gapX, cell.height + gapY], lines, fontSize, left, top, width, height, right: Math.max(width, titleWidth - left) };
}

// Place grids in rows; with `isTable`, their bodies are aligned in columns, too, and a grid that is named again in the next
// row extends over both. Return the size of the whole.
function placeRows(rows, isTable) {
  const count = Math.max(...rows.map((row) => row.length));
  const aligned = count > 1 ? rows.filter((row) => row.length > 1) : rows; // a grid alone in its row spans all columns
  const lefts = Array.from({ length: count }, (_, c) => Math.max(0, ...aligned.map((row) => row[c]?.left ?? 0)));
  const rights = Array.from({ length: count }, (_, c) => Math.max(0, ...aligned.map((row) => row[c]?.right ?? 0)));
  let [y, widest] = [MARGIN, 0];
  const places = new Map();
  rows.forEach((row, r) => {
    let x = MARGIN;
    const isNew = (box) => box && !places.has(box.grid.name);
    const top = Math.max(0, ...row.map((box) => (isNew(box) ? box.top : 0)));
    row.forEach((box, c) => {
      const left = isTable ? Math.max(lefts[c], row.length > 1 ? 0 : box.left) : (box?.left ?? 0);
      if (isNew(box)) places.set(box.grid.name, { ...box, x: x + left, y: y + top });
      x += left + (isTable && row.length > 1 ? rights[c] : (box?.right ?? 0)) + GUTTER;
    });
    widest = Math.max(widest, x - GUTTER);
    const ended = row.filter((box) => box && !rows[r + 1]?.includes(box));
    y = Math.max(y + top, ...ended.map((box) => places.get(box.grid.name).y + box.height)) + GUTTER;
  });
  return { places, width: widest + MARGIN, height: y - GUTTER + MARGIN + 4 };
}

// Put grids into rows, in their order, each row at most so wide, up to rounding.
function wrapGrids(boxes, width) {
  const rows = [[]];
  let used = 0;
  for (const box of boxes) {
    const own = box.left + box.right + GUTTER;
    if (rows.at(-1).length && used + own > width + 1) [used] = [rows.push([]) && 0];
    rows.at(-1).push(box);
    used += own;
  }
  return rows;
}

// Arrange the grids so that their cells are as large as possible in a window: in the rows of the layout, or in any rows. Cells
// have less air around their texts where the picture would otherwise be too wide, as on a phone. `largest` limits the scale.
function arrange(data, width, height, largest) {
  const texts = data.grids.map((grid) => measureTexts(grid, data.frames));
  const roomy = arrangeCells(data, texts, width, height, largest, false);
  return roomy.fits ? roomy : arrangeCells(data, texts, width, height, largest, true);
}

function arrangeCells(data, texts, width, height, largest, isTight) {
  const boxes = data.grids.map((grid, k) => measureGrid(grid, texts[k], isTight));
  const byName = new Map(boxes.map((box) => [box.grid.name, box]));
  const scaleOf = (found) => Math.min(largest, width / found.width, height / found.height);
  const wraps = [];
  for (let sum = 0, k = 0; k < boxes.length; k++) {
    sum = boxes.slice(0, k + 1).reduce((total, box) => total + box.left + box.right + GUTTER, 0);
    wraps.push(placeRows(wrapGrids(boxes, sum), false));
  }
  if (data.layout) wraps.push(placeRows(data.layout.map((row) => row.map((name) => byName.get(name))), true));
  const narrow = wraps.filter((found) => width / found.width >= SMALLEST); // scrolling down is easier than sideways
  const choice = narrow.length ? narrow : wraps;
  const best = choice.reduce((a, b) => (scaleOf(b) > scaleOf(a) + 0.02 ? b : a), choice.at(-1) ?? placeRows([[]], false));
  const table = data.layout && wraps.at(-1);
  const isTable = table && scaleOf(table) > SMALLEST;
  const found = isTable ? table : best;
  return { ...found, scale: Math.max(scaleOf(found), SMALLEST), fits: narrow.length > 0 && (isTable || !table) };
}
