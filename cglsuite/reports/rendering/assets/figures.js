"use strict";
/* Figures with marks (cglsuite.reports.kit.marks) are drawn into the page: a click on a legend entry hides its method in all figures of the
   gallery, and the values of points and cells are shown on hover, and from a legend entry with the arrow keys. The image stays for paper
   and without a script. */
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const HREF = "http://www.w3.org/1999/xlink";
  const START = "data:image/svg+xml;base64,";
  const ELEMENTS = new Set(["svg", "g", "path", "text", "tspan", "defs", "use", "clipPath", "rect", "image"]);
  const ATTRIBUTES = new Set(["id", "d", "x", "y", "width", "height", "transform", "style", "clip-path", "viewBox", "font-family", "href",
    "data-series", "data-points", "data-legend", "data-grid"]);
  const NEAR = 24;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  /* Only elements and attributes that drawings need, and nothing that leads out of the drawing; names are made unique in the page. */
  const cleaned = (element, prefix) => {
    for (const child of [...element.children]) {
      if (child.namespaceURI === SVG && ELEMENTS.has(child.localName)) cleaned(child, prefix);
      else child.remove();
    }
    for (const { localName: name, value, namespaceURI: space } of [...element.attributes]) {
      const inside = name === "href" ? value.startsWith("#") || value.startsWith("data:image/png;base64,") : !/url\((?!#)/.test(value);
      if (!ATTRIBUTES.has(name) || !inside) element.removeAttributeNS(space, name);
      else if (name === "id") element.id = prefix + value;
      else if (name === "href" && value.startsWith("#")) element.setAttributeNS(HREF, "href", `#${prefix}${value.slice(1)}`);
      else if (value.includes("url(#")) element.setAttribute(name, value.replaceAll("url(#", `url(#${prefix}`));
    }
    return element;
  };

  /* Variables of the drawing's own style sheet (cglsuite.reports.rendering.themed) by their values: in the page, the sheet has no effect. */
  const coloured = (text, scheme) => {
    const sheet = text.match(/:root{([^}]*)}@media [^{]*{:root{([^}]*)}}/);
    if (!sheet) return text;
    const values = new Map(sheet[scheme === "dark" ? 2 : 1].split(";").map((one) => one.split(":")));
    return text.replaceAll(/var\((--\d+)\)/g, (whole, name) => values.get(name) ?? whole);
  };

  const decoded = (source) => new TextDecoder().decode(Uint8Array.from(atob(source.slice(START.length)), (c) => c.charCodeAt(0)));

  /* The values of a drawing as rows of text, its head first: a matrix as it is, series side by side where their points have names. */
  const tabled = (svg) => {
    const grid = svg.querySelector("[data-grid]");
    if (grid) {
      const { rows, columns, cells } = JSON.parse(grid.dataset.grid);
      return [["", ...columns], ...rows.map((name, at) => [name, ...cells[at]])];
    }
    const series = [...svg.querySelectorAll("[data-points]")].map((one) => [one.dataset.series, JSON.parse(one.dataset.points)]);
    const parts = series.map(([name, texts]) => [name, texts.map((text) => text.match(/^(.*): ([^:]*)$/))]);
    if (!parts.every(([, found]) => found.every(Boolean)))
      return [["series", "value"], ...series.flatMap(([name, texts]) => texts.map((text) => [name, text]))];
    const places = [...new Set(parts.flatMap(([, found]) => found.map((one) => one[1])))];
    const columns = parts.map(([, found]) => new Map(found.map((one) => [one[1], one[2]])));
    return [["", ...parts.map(([name]) => name)], ...places.map((place) => [place, ...columns.map((column) => column.get(place) ?? "")])];
  };
  const inCsv = (cell) => {
    const text = cell.replaceAll("\u2212", "-").replace(/(\d),(?=\d{3}(?!\d))/g, "$1");
    const safe = /^\s*[=+\-@]/.test(text) && !/^-?[\d.]+( ± [\d.]+)?$/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const SIGNS = {
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    "±": "$\\pm$", "\u2212": "$-$", "×": "$\\times$",
  };
  const inLatex = (cell) => cell.replace(/[\\~^±\u2212×{}$&#_%]/g, (sign) => SIGNS[sign] ?? `\\${sign}`);
  const booktabs = ([head, ...rows]) => {
    const line = (cells) => `${cells.map(inLatex).join(" & ")} \\\\\n`;
    const inside = `\\toprule\n${line(head)}\\midrule\n${rows.map(line).join("")}\\bottomrule\n`;
    return `% needs \\usepackage{booktabs}\n\\begin{tabular}{l${"r".repeat(head.length - 1)}}\n${inside}\\end{tabular}\n`;
  };

  /* Links below a figure that save it and its values, made when they are reached; the drawing in the colours for paper. */
  const ENDINGS = { SVG: "svg", CSV: "csv", LaTeX: "tex" };
  const contents = (source) => {
    const svg = cleaned(new DOMParser().parseFromString(coloured(decoded(source), "light"), "image/svg+xml").documentElement, "");
    const rows = tabled(svg);
    const csv = rows.map((row) => `${row.map(inCsv).join(",")}\n`).join("");
    return { SVG: new XMLSerializer().serializeToString(svg), CSV: csv, LaTeX: booktabs(rows) };
  };
  const offer = (figure, number) => {
    const source = figure.querySelector("img").src;
    if (!source.startsWith(START)) return;
    const line = document.createElement("p");
    line.className = "save";
    for (const name of figure.querySelector("[data-points], [data-grid]") ? Object.keys(ENDINGS) : ["SVG"]) {
      const link = line.appendChild(document.createElement("a"));
      link.textContent = name;
      link.download = `figure-${number + 1}.${ENDINGS[name]}`;
      link.href = "data:,";
    }
    const fill = () => {
      const made = contents(source);
      for (const link of line.children) link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(made[link.textContent])}`;
    };
    for (const event of ["pointerenter", "focusin"]) line.addEventListener(event, fill, { once: true });
    figure.append(line);
  };

  class Live {
    constructor(figure, number) {
      [this.figure, this.number, this.off, this.peers] = [figure, number, new Set(), [this]];
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.setAttribute("aria-live", "polite");
      this.tip.hidden = true;
      this.draw();
      if (this.svg) dark.addEventListener("change", () => this.draw());
    }

    draw() {
      const picture = this.figure.querySelector("picture");
      const source = (dark.matches && picture.querySelector("source")?.srcset) || picture.querySelector("img").src;
      if (!source.startsWith(START)) return;
      const text = coloured(decoded(source), dark.matches ? "dark" : "light");
      const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
      if (parsed.localName !== "svg" || !parsed.querySelector("[data-series], [data-legend], [data-grid]")) return;
      const size = ["width", "height"].map((name) => parseFloat(parsed.getAttribute(name)));
      this.svg?.remove();
      this.svg = document.importNode(cleaned(parsed, `figure-${this.number}-`), true);
      this.svg.removeAttribute("style");
      this.svg.setAttribute("width", `${size[0]}pt`);
      this.svg.setAttribute("height", `${size[1]}pt`);
      this.svg.setAttribute("role", "group");
      this.svg.setAttribute("aria-label", picture.querySelector("img").alt);
      picture.after(this.svg, this.tip);
      this.figure.classList.add("live");
      this.ring = this.svg.appendChild(document.createElementNS(SVG, "circle"));
      this.ring.setAttribute("r", "5.5");
      this.ring.setAttribute("class", "ring");
      this.points = [...this.svg.querySelectorAll("[data-points]")].flatMap((group) => this.pointsOf(group));
      this.grids = [...this.svg.querySelectorAll("[data-grid]")].map((group) => [group, JSON.parse(group.dataset.grid)]);
      this.entries();
      this.apply();
      this.show();
      this.svg.addEventListener("pointermove", (event) => this.hover(event));
      this.svg.addEventListener("pointerdown", (event) => this.hover(event));
      this.svg.addEventListener("pointerleave", () => this.show());
    }

    pointsOf(group) {
      const texts = JSON.parse(group.dataset.points);
      const uses = [...group.querySelectorAll("use")].map((use) => [use.getAttribute("x"), use.getAttribute("y")].map(Number));
      const numbers = (group.querySelector(":scope > path")?.getAttribute("d").match(/-?[\d.]+/g) ?? []).map(Number);
      const path = numbers.flatMap((x, at) => (at % 2 ? [] : [[x, numbers[at + 1]]]));
      const places = uses.length === texts.length ? uses : path.length === texts.length ? path : [];
      return places.map(([x, y], at) => ({ figure: this, series: group.dataset.series, x, y, text: texts[at] }));
    }

    /* The parts of an entry (its line and its name) become one button, on a ground that is large enough to hit. */
    entries() {
      const parts = Map.groupBy(this.svg.querySelectorAll("[data-legend]"), (part) => part.dataset.legend);
      this.buttons = new Map();
      for (const [name, elements] of parts) {
        const button = document.createElementNS(SVG, "g");
        const boxes = elements.map((element) => element.getBBox());
        const ground = button.appendChild(document.createElementNS(SVG, "rect"));
        const left = Math.min(...boxes.map((box) => box.x)), right = Math.max(...boxes.map((box) => box.x + box.width));
        const middle = boxes[0].y + boxes[0].height / 2;
        for (const [key, value] of Object.entries({ x: left - 3, y: middle - 9, width: right - left + 6, height: 18, class: "ground" }))
          ground.setAttribute(key, value);
        elements[0].before(button);
        button.append(...elements);
        button.setAttribute("role", "button");
        button.setAttribute("tabindex", "0");
        button.setAttribute("aria-label", name);
        button.addEventListener("click", () => this.toggle(name));
        button.addEventListener("keydown", (event) => this.key(event, name));
        button.addEventListener("blur", () => this.tell());
        this.buttons.set(name, button);
      }
    }

    toggle(name) {
      this.off[this.off.has(name) ? "delete" : "add"](name);
      this.tell();
      for (const one of this.peers) one.apply();
    }

    apply() {
      for (const part of this.svg.querySelectorAll("[data-series]")) part.classList.toggle("hidden", this.off.has(part.dataset.series));
      for (const [name, button] of this.buttons) button.setAttribute("aria-pressed", String(!this.off.has(name)));
    }

    key(event, name) {
      const own = this.peers.flatMap((one) => one.points).filter((point) => point.series === name);
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Enter" || event.key === " ") this.toggle(name);
      else if (event.key === "Escape") this.tell();
      else if (step && own.length && !this.off.has(name)) {
        const now = own.indexOf(this.told);
        this.tell(own[now < 0 ? (step > 0 ? 0 : own.length - 1) : Math.min(own.length - 1, Math.max(0, now + step))]);
      } else return;
      event.preventDefault();
    }

    /* A point of any figure of the gallery; none clears them all. */
    tell(point) {
      this.told = point;
      for (const one of this.peers) one.show(one === point?.figure ? point : undefined);
    }

    hover(event) {
      const to = this.svg.getScreenCTM().inverse();
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(to);
      let [best, least] = [undefined, NEAR * to.a];
      for (const point of this.points) {
        const away = Math.hypot(point.x - at.x, point.y - at.y);
        if (away < least && !this.off.has(point.series)) [best, least] = [point, away];
      }
      this.show(best ?? this.cell(at));
    }

    cell(at) {
      for (const [group, { rows, columns, cells }] of this.grids) {
        const box = group.querySelector("path").getBBox();
        const row = Math.floor(((at.y - box.y) / box.height) * rows.length);
        const column = Math.floor(((at.x - box.x) / box.width) * columns.length);
        if (cells[row]?.[column]) return { series: "", x: at.x, y: at.y, text: `${rows[row]}, ${columns[column]}: ${cells[row][column]}` };
      }
      return undefined;
    }

    show(point) {
      this.tip.hidden = !point;
      this.ring.classList.toggle("hidden", !point?.series);
      if (!point) return;
      this.tip.textContent = point.series ? `${point.series}, ${point.text}` : point.text;
      this.ring.setAttribute("cx", point.x);
      this.ring.setAttribute("cy", point.y);
      const place = new DOMPoint(point.x, point.y).matrixTransform(this.svg.getScreenCTM());
      const box = this.figure.getBoundingClientRect();
      const left = Math.min(place.x - box.left + 10, box.width - this.tip.offsetWidth);
      this.tip.style.left = `${Math.max(0, left)}px`;
      this.tip.style.top = `${place.y - box.top + 12}px`;
    }
  }

  const figures = [...document.querySelectorAll("figure:has(> picture)")];
  const live = figures.map((figure, number) => new Live(figure, number)).filter((one) => one.svg);
  figures.forEach(offer);
  /* Galleries that follow each other without words between them are one. */
  const beginning = ({ figure }) => {
    let gallery = figure.parentElement;
    while (gallery.previousElementSibling?.matches(".gallery, .gallery-title")) gallery = gallery.previousElementSibling;
    return gallery;
  };
  for (const together of Map.groupBy(live, beginning).values()) {
    const off = new Set();
    for (const one of together) [one.peers, one.off] = [together, off];
  }
  const first = live.find((one) => one.svg.querySelector("[data-legend]"));
  if (first) {
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.textContent = "Click a name in a legend to hide or show it. Values appear where the pointer is, or from a name with the arrow keys.";
    first.figure.parentElement.before(hint);
  }
})();
