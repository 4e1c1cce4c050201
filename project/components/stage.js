// The stage: a picture that plays. Hover and focus highlight linked cells; arrows, Home and End move the focus in a grid, and
// the steps outside; Enter selects, Esc clears. What cells, edges and steps show is computed in Python.

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const CALM_MS = 150; // browsers limit how often the address is written, and a dragged slider changes more often
const WORDS = /(#.*$)|\b(def|for|in|if|elif|else|and|or|not|while|pass|return|range|from|import|with|as)\b/g;
const ANYWHERE = ["?", "f"]; // keys that mean the same on a cell, and for a picture without steps
const MAX_HEAD = 20; // characters of the names of counts beside one another

function element(kind, classes, text) {
  const made = document.createElement(kind);
  made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
}

function legendItem([kind, words]) {
  const item = element("li", "");
  const cell = draw(draw(item, "svg", { viewBox: "0 0 22 18", "aria-hidden": true }), "g", { class: `swatch ${kind}` });
  draw(cell, "rect", { x: 1, y: 1, width: 20, height: 16, rx: 3 });
  draw(cell, "path", { class: "mark", d: MARKS[kind]?.(22, 18) ?? "" });
  item.append(words);
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
  for (const other of cells) if (other.tabIndex === 0) other.setAttribute("tabindex", -1);
  cell.setAttribute("tabindex", 0);
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
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function keepStep(name, k) {
  const others = location.search.slice(1).split("&").filter((part) => part && !part.startsWith(`${name}=`));
  const search = (k === null ? others : [...others, `${name}=${k}`]).join("&");
  if (search === location.search.slice(1)) return;
  history.replaceState(history.state, "", location.pathname + (search && `?${search}`) + location.hash);
}

// A long name such as cuda.blockIdx.x may be broken after a dot or a parenthesis, where the source is narrow.
function withBreaks(text) {
  return text.split(/(?<=\w[.(])(?=\w)/).flatMap((part, k) => (k ? [document.createElement("wbr"), part] : [part]));
}

function codeLine([number, text, counts], columns) {
  const line = element("div", "line");
  line.dataset.number = number;
  const told = new Map(counts);
  line.append(element("span", "counts", columns.map(({ kind, width }) => `${told.get(kind) ?? ""}`.padStart(width)).join(" ")));
  line.append(element("span", "number", number || ""));
  const words = element("span", "text");
  words.style.setProperty("--indent", text.match(/^ */)[0].length);
  let end = 0;
  const trimmed = text.trim();
  for (const found of trimmed.matchAll(WORDS)) {
    words.append(...withBreaks(trimmed.slice(end, found.index)), element(found[1] ? "i" : "b", "", found[0]));
    end = found.index + found[0].length;
  }
  words.append(...withBreaks(trimmed.slice(end)));
  line.append(words);
  return line;
}

// The counts that lines have, each a column. If there are many, their names are turned, so that room is left for the code.
function countColumns(source) {
  const kinds = [...new Set(source.flatMap(([, , counts]) => counts.map(([kind]) => kind)))];
  const widths = kinds.map((kind) => Math.max(2, ...source.map(([, , counts]) => `${new Map(counts).get(kind) ?? ""}`.length)));
  const isTurned = kinds.join(" ").length > MAX_HEAD;
  return [kinds.map((kind, k) => ({ kind, width: isTurned ? widths[k] : Math.max(widths[k], kind.length) })), isTurned];
}

function headLine(columns, isTurned) {
  const [line, counts] = [element("div", isTurned ? "line head turned" : "line head"), element("span", "counts")];
  for (const { kind, width } of columns) {
    const name = element("span", "");
    name.style.width = `${width}ch`;
    name.append(element("span", "", kind));
    counts.append(name);
  }
  line.append(counts);
  return line;
}

function showSource(root, { sourceTitle, source }) {
  const aside = root.querySelector(".source");
  aside.hidden = !source.length;
  aside.querySelector("h2").textContent = sourceTitle;
  const [columns, isTurned] = countColumns(source);
  const head = columns.length ? [headLine(columns, isTurned)] : [];
  aside.querySelector(".code").replaceChildren(...head, ...source.map((line) => codeLine(line, columns)));
}

function lightLine(root, number) {
  const code = root.querySelector(".code");
  for (const line of code.children) line.classList.toggle("lit", number !== undefined && Number(line.dataset.number) === number);
  const lit = code.querySelector(".lit");
  cancelAnimationFrame(root.scrolling); // to read sizes now would lay out the page before the picture is complete
  root.scrolling = requestAnimationFrame(() => {
    if (lit && code.scrollHeight > code.clientHeight) code.scrollTop = lit.offsetTop - code.offsetTop - code.clientHeight / 2;
  });
}

function isDark(root) {
  const canvas = (isDark.canvas ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true }));
  canvas.fillStyle = getComputedStyle(root).getPropertyValue("--st-background-color");
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
  return r + g + b < 384;
}

export default function (component) {
  const { data, parentElement, setStateValue, setTriggerValue } = component;
  const root = parentElement.querySelector(".board");
  const [sentence, svg, view, legend, numbers] = [".sentence", ".picture", ".view", ".legend", ".numbers"].map((name) => root.querySelector(name));
  joinEntries();
  root.dataset.theme = isDark(root) ? "dark" : "light";
  legend.replaceChildren(...data.legend.map(legendItem));
  legend.hidden = data.legend.length === 0;
  showSource(root, data);

  let [all, cellAt, byLink, overlay, lit, pointed] = [[], new Map(), new Map(), null, new Set(), null];
  const find = (place) => cellAt.get(place.join());
  const code = root.querySelector(".code"); // a link "line 7" joins a cell and line 7, but not the cells of line 7
  const lightAll = (cells, isNear = () => false) => {
    for (const cell of lit) cell.classList.remove("lit");
    lit = new Set(cells);
    for (const cell of lit) cell.classList.add("lit");
    overlay?.light(lit); // there is none yet while a cell that had the focus is taken out
    for (const line of code.children) line.classList.toggle("near", isNear(line));
  };
  // Light what is pointed at: for a line, its cells; for an arrow, its ends; for a cell, all with its links, what leads to it
  // along arrows, and where its own arrows lead. Arrows between lit cells are lit, too.
  const light = (at) => {
    pointed = at;
    if (!at) lightAll([]);
    else if (at.dataset.number) lightAll(byLink.get(`line ${at.dataset.number}`) ?? []);
    else if (at.ends) lightAll(at.ends);
    else {
      const links = at.links.filter((link) => !link.startsWith("line "));
      lightAll([...links.flatMap((link) => byLink.get(link)), ...overlay.neighbors(at)], (line) => at.links.includes(`line ${line.dataset.number}`));
    }
  };
  const dim = () => light(null);
  code.onmouseover = (event) => light(event.target.closest(".line"));
  code.onmouseleave = dim;
  const pick = (link) => {
    root.chosen = link; // kept when the server sends a new picture
    for (const cell of all) {
      const isPicked = link !== null && cell.links.includes(link);
      cell.classList.toggle("picked", isPicked);
      cell.setAttribute("aria-selected", isPicked);
    }
  };
  if (data.chosen !== undefined) root.chosen = data.chosen || null;
  const choose = (link) => {
    if (link === undefined || link === root.chosen) return;
    pick(link);
    if (data.chosen === undefined) setStateValue("chosen", link);
    else setTriggerValue("picked", link ?? ""); // the page has the state, and sends it back
  };

  const isFull = () => root.matches(":fullscreen");
  const build = () => {
    const before = placesOf(svg);
    let focused;
    const largest = isFull() ? LARGEST_FULL : LARGEST;
    const { places, width, height, scale } = arrange(data, view.clientWidth - 2, view.clientHeight - 2, largest);
    svg.replaceChildren();
    Object.entries({ viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale }).forEach(([name, value]) => svg.setAttribute(name, value));
    drawDefinitions(svg);
    all = [];
    cellAt = new Map();
    byLink = new Map();
    [lit, pointed] = [new Set(), null];
    for (const place of places.values()) {
      const table = drawGrid(svg, place);
      const cells = [...table.querySelectorAll(".cell")];
      for (const cell of cells) {
        cell.body = place;
        cellAt.set([place.grid.name, ...cell.place].join(), cell);
        for (const link of cell.links) byLink.has(link) ? byLink.get(link).push(cell) : byLink.set(link, [cell]);
      }
      all.push(...cells);
      const kept = before.get(place.grid.name);
      const start = cells.find((cell) => `${cell.place}` === kept?.place) ?? cells[0];
      if (start) enterAt(cells, start);
      if (kept?.hasFocus) focused = start; // redrawn while a cell of it had the focus
    }
    overlay = new Overlay(svg, find, all);
    focused?.focus({ preventScroll: true });
  };

  const cellOf = (event) => event.target.closest?.(".cell:not(.flying)");
  const cellsOf = (cell) => [...cell.closest(".grid").querySelectorAll(".cell")];
  root.listening?.abort(); // the server has sent a new picture, whose cells the listeners before do not know
  root.listening = new AbortController();
  const { signal } = root.listening;
  const onFocus = (event) => {
    const cell = cellOf(event);
    if (!cell?.links) return;
    enterAt(cellsOf(cell), cell);
    light(cell);
  };
  svg.addEventListener("focusin", onFocus, { signal });
  svg.addEventListener("focusout", dim, { signal });
  svg.onmouseover = (event) => {
    const at = event.target.ends ? event.target : cellOf(event);
    if (at?.links ?? at?.ends) light(at);
  };
  svg.onmouseleave = dim;
  svg.onclick = (event) => cellOf(event)?.links && choose(cellOf(event).links[0]);

  const last = data.frames.length - 1;
  const within = (k) => Math.min(k, Math.max(last, 0));
  const player = root.querySelector(".player");
  const [first, back, play, on, end, step, speed] = [".first", ".back", ".play", ".on", ".last", ".step", ".speed"].map((name) => player.querySelector(name));
  player.hidden = last < 1;
  step.max = Math.max(last, 0);
  const opening = within(data.first ?? 0);
  const keep = (k) => {
    clearTimeout(root.keeping);
    const page = location.pathname; // another page may be open when the timer fires
    root.keeping = setTimeout(() => root.isConnected && location.pathname === page && keepStep(data.step, k === opening ? null : k), CALM_MS);
  };
  const show = (k, moves = false) => {
    const frame = data.frames[k] ?? {};
    const said = frame.sentence ?? data.sentence;
    if (sentence.textContent !== said) sentence.textContent = said; // a live region: setting an equal text would announce it again
    step.value = k;
    player.querySelector(".count").textContent = `${k + 1} of ${last + 1}`;
    step.setAttribute("aria-valuetext", `${k + 1} of ${last + 1}`);
    for (const [button, isOff] of [[back, k <= 0], [first, k <= 0], [on, k >= last], [end, k >= last]]) button.setAttribute("aria-disabled", isOff);
    const [kinds, texts, tints] = [frame.kinds, frame.texts, frame.tints].map((pairs) => new Map(pairs));
    for (const cell of all) {
      const now = (from) => cell.links.map((link) => from.get(link)).find((found) => found !== undefined);
      setCell(cell, now(kinds) ?? cell.kind, now(texts) ?? cell.text, now(tints) ?? cell.tint);
    }
    overlay.show([...(data.edges ?? []), ...(frame.edges ?? [])], [...(data.hulls ?? []), ...(frame.hulls ?? [])], moves);
    if (pointed) light(pointed); // there may be new arrows
    if (moves) fly(svg, frame.flights ?? [], find);
    lightLine(root, frame.line);
    numbers.replaceChildren(...(frame.numbers ?? data.numbers ?? []).map(([value, words]) => {
      const item = element("div", "");
      item.append(element("dt", "", words), element("dd", "", value));
      return item;
    }));
    pick(root.chosen ?? null);
    keep(k);
  };

  const at = () => Number(step.value);
  const stop = () => {
    clearInterval(root.playing);
    root.playing = undefined;
    play.textContent = "\u25b6 Play";
  };
  const go = (k) => {
    stop();
    show(Math.max(0, within(k)), true);
  };
  const run = () => {
    if (root.playing) return stop();
    if (at() === last) show(0);
    root.playing = setInterval(() => (root.isConnected && at() < last ? show(at() + 1, true) : stop()), Number(speed.value));
    play.textContent = "\u275a\u275a Pause";
  };
  stop();
  step.oninput = () => {
    stop();
    show(at()); // nothing flies while a finger drags
  };
  const actions = [[first, () => go(0)], [back, () => go(at() - 1)], [play, run], [on, () => go(at() + 1)], [end, () => go(last)]];
  for (const [button, action] of actions) button.onclick = action;
  speed.onchange = () => root.playing && (stop(), run());
  const keys = root.querySelector(".keys");
  root.querySelector(".help").onclick = () => keys.showModal();
  const full = root.querySelector(".full");
  full.hidden = !document.fullscreenEnabled; // another page shows this one, and does not allow it
  const toggleFull = () => (isFull() ? document.exitFullscreen() : document.fullscreenEnabled && root.requestFullscreen());
  full.onclick = toggleFull;
  root.onfullscreenchange = () => full.setAttribute("aria-pressed", isFull());
  for (const button of root.querySelectorAll(".copy")) button.onclick = () => copyText(linkText(button.dataset.kind, data.step, at()), button);
  for (const button of root.querySelectorAll(".save")) {
    const kind = button.dataset.kind;
    button.hidden = kind === "webm" && (last < 1 || typeof MediaRecorder === "undefined");
    button.onclick = async () => {
      stop();
      const k = at();
      button.setAttribute("aria-disabled", true);
      const blob = await (SAVES[kind]?.(root) ?? recordClip(root, last + 1, show, Number(speed.value)));
      button.setAttribute("aria-disabled", false);
      show(k);
      save(blob, `${data.name}${last < 1 || kind === "webm" ? "" : `-${k + 1}`}.${kind}`);
    };
  }

  const KEYS = { " ": run, ArrowLeft: () => go(at() - 1), ArrowRight: () => go(at() + 1), Home: () => go(0), End: () => go(last), "?": () => keys.showModal(), f: toggleFull };
  root.onkeydown = (event) => {
    if (event.altKey || event.metaKey || event.target.closest?.("dialog")) return;
    const from = cellOf(event);
    if (drag.press(event, from, (cell, key) => goal(cellsOf(cell), cell, key))) return event.preventDefault();
    if (from?.links && !ANYWHERE.includes(event.key)) {
      if (event.key in MOVES || event.key === "Home" || event.key === "End") goal(cellsOf(from), from, event.key, event.ctrlKey)?.focus();
      else if (event.key === "Enter" || event.key === " ") choose(from.links[0]);
      else if (event.key === "Escape") {
        dim();
        choose(null);
      } else return;
    } else if (!(event.key in KEYS) || event.ctrlKey || event.target.closest?.("select, input") || (event.key === " " && event.target.closest?.("button"))) return;
    else if (last >= 1 || ANYWHERE.includes(event.key)) KEYS[event.key]();
    event.preventDefault();
  };
  const drag = new Drag(svg, (cells) => setTriggerValue("dragged", cells), signal);

  build();
  const isNew = root.keeping === undefined || root.isBack; // the step of the first picture of a page is in the address
  root.isBack = false;
  window.addEventListener("popstate", () => (root.isBack = true), { signal });
  // The server chose another step; a picture that only grows stays where it is, or on its opening step.
  const isElsewhere = at() === root.opening || (root.opening !== opening && data.frames.length <= root.count);
  show(within(isNew ? (stepIn(data.step) ?? opening) : isElsewhere ? opening : at()));
  Object.assign(root, { opening, count: data.frames.length });
  const sizeOf = () => `${view.clientWidth} ${isFull() && view.clientHeight}`; // a phone's height changes with each scroll
  let size = sizeOf();
  root.resizing?.disconnect();
  root.resizing = new ResizeObserver(() => {
    if (sizeOf() === size || !view.clientWidth) return;
    size = sizeOf();
    build();
    show(at());
  });
  root.resizing.observe(view);
}
