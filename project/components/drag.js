// Drags from one cell to another, by pointer or finger, or by Shift with arrows and then Enter. A frame shows what they cover.
// Only grids that say so can be dragged over; what a drag means is decided in Python.

const FRAME = 4; // units around the cells

class Drag {
  constructor(svg, report, signal) {
    Object.assign(this, { svg, report, from: null, to: null, frame: null });
    for (const [name, act] of [["pointerdown", this.begin], ["pointermove", this.move], ["pointerup", this.end], ["pointercancel", this.clear]])
      svg.addEventListener(name, act.bind(this), { signal });
    svg.addEventListener("touchmove", (event) => this.from && event.preventDefault(), { signal, passive: false }); // no scrolling
  }

  begin(event) {
    this.clear();
    if (event.isPrimary && event.button === 0) this.from = this.cellUnder(event);
  }

  move(event) {
    const cell = this.from && this.cellUnder(event);
    if (!cell || cell === (this.to ?? this.from)) return;
    this.svg.setPointerCapture(event.pointerId); // so that it may leave the picture; not earlier, or no cell is clicked
    this.show(this.from, cell);
  }

  end() {
    const { from, to } = this;
    this.clear();
    if (to && to !== from) this.report([from.links[0], to.links[0]]);
  }

  clear() {
    this.frame?.remove();
    this.from = this.to = this.frame = null;
  }

  cellUnder({ clientX, clientY }) {
    const cell = this.svg.getRootNode().elementFromPoint(clientX, clientY)?.closest(".cell:not(.flying)");
    return cell?.body.grid.drags ? cell : null;
  }

  show(from, to) {
    this.frame?.remove();
    const [x, y] = ["x", "y"].map((side) => Math.min(from.box[side], to.box[side]) - FRAME);
    const [width, height] = [[x, "x", "width"], [y, "y", "height"]].map(([start, side, size]) => Math.max(...[from, to].map(({ box }) => box[side] + box[size])) + FRAME - start);
    Object.assign(this, { from, to, frame: draw(this.svg, "rect", { x, y, width, height, rx: 8, class: "rubber" }) });
  }

  // Take a key, and return whether it belongs to a drag.
  press({ key, shiftKey }, cell, next) {
    if (shiftKey && key in MOVES && cell?.body.grid.drags) {
      const to = next(cell, key);
      if (to) this.show(this.from ?? cell, to);
      to?.focus();
      return true;
    }
    const isOpen = this.to !== null;
    if (isOpen && key === "Enter") this.end();
    else if (key !== "Shift") this.clear();
    return isOpen && (key === "Enter" || key === "Escape");
  }
}
