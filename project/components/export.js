// Save or share what is seen: this step as SVG or PNG, with its sentence and legend, all steps as a clip, or a link.

const PNG_SCALE = 2;

// Return the picture of this step as the text of an SVG file, with its sentence above and the colors of this theme.
function svgText(root) {
  const svg = root.querySelector(".picture").cloneNode(true);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const lines = wrapWords(root.querySelector(".sentence").textContent, Math.max(width, 320));
  const items = [...root.querySelectorAll(".legend li")];
  const [top, total] = [lines.length * TITLE + 12, Math.max(width, 320)];
  for (const token of svg.querySelectorAll(".flying")) token.remove();
  const style = getComputedStyle(root);
  const names = ["load", "store", "shared", "other", "path", "race", "ink", "soft", "line", "paper", "pale-load", "pale-store", "pale-shared", "pale-other"];
  svg.setAttribute("style", names.map((name) => `--${name}:${style.getPropertyValue(`--${name}`)}`).join(";") + ";background:var(--paper)");
  svg.setAttribute("class", "picture");
  svg.setAttribute("viewBox", `0 ${-top} ${total} ${height + top + items.length * TITLE + 10}`);
  svg.setAttribute("width", total);
  svg.setAttribute("height", height + top + items.length * TITLE + 10);
  lines.forEach((line, k) => draw(svg, "text", { x: MARGIN, y: (k + 1) * TITLE - top, class: "title" }, line));
  items.forEach((item, k) => {
    const swatch = item.querySelector(".swatch").cloneNode(true);
    swatch.setAttribute("transform", `translate(${MARGIN} ${height + k * TITLE + 1})`);
    svg.append(swatch);
    draw(svg, "text", { x: MARGIN + 26, y: height + k * TITLE + 12, class: "note start" }, item.textContent);
  });
  const rules = [...root.getRootNode().querySelectorAll("style")].map((element) => element.textContent).join("\n");
  svg.prepend(draw(null, "style", {}, rules));
  return new XMLSerializer().serializeToString(svg);
}

// Return a link to this step, or the text that shows it in another page, without title and controls.
function linkText(kind, step, k) {
  const address = new URL(location.href);
  address.searchParams.set(step, k);
  if (kind === "link") return address.href;
  address.searchParams.set("embed", "true");
  return `<iframe src="${address.href.replaceAll("&", "&amp;")}" width="960" height="720" allow="fullscreen" title="minifuse"></iframe>`;
}

// Copy a text; where a browser does not let a page do that, show it, to be copied by hand.
async function copyText(text, button) {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = words), 1500);
  } catch {
    prompt(words, text);
  }
}

function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function loadImage(text) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = reject;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
}

async function paint(root, canvas) {
  const image = await loadImage(svgText(root));
  if (!canvas.width || !canvas.isSized) Object.assign(canvas, { width: image.width * PNG_SCALE, height: image.height * PNG_SCALE, isSized: true });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(root).getPropertyValue("--paper");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, image.width * PNG_SCALE, image.height * PNG_SCALE);
}

// Record one pass through the steps, each as long as the player would show it.
async function recordClip(root, count, show, milliseconds) {
  const canvas = document.createElement("canvas");
  await paint(root, canvas);
  const recorder = new MediaRecorder(canvas.captureStream(10), { mimeType: "video/webm" });
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  const ended = new Promise((resolve) => (recorder.onstop = resolve));
  recorder.start();
  for (let k = 0; k < count; k++) {
    show(k);
    await paint(root, canvas);
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
  }
  recorder.stop();
  await ended;
  return new Blob(parts, { type: "video/webm" });
}

const SAVES = {
  svg: async (root) => new Blob([svgText(root)], { type: "image/svg+xml" }),
  png: async (root) => {
    const canvas = document.createElement("canvas");
    await paint(root, canvas);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  },
};
