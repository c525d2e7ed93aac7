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

  /* A drawing as PDF. Its text is set in the page's own fonts (cglsuite.reports.rendering.page), embedded as TrueType (Type 42). */
  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const deflated = async (bytes) => {
    const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const numbers = (...values) => values.map((value) => +value.toFixed(3)).join(" ");
  const inHex = (number) => number.toString(16).padStart(4, "0");

  class Pdf {
    constructor() {
      [this.objects, this.resources, this.ids, this.commands] = [[], { Font: "", ExtGState: "", XObject: "" }, new Map(), []];
    }

    /* The number of a new object; a stream has bytes after its dictionary. */
    add(dictionary, bytes) {
      const length = bytes ? ` /Length ${bytes.length}` : "";
      return this.objects.push([`<<${dictionary}${length}>>`, bytes]);
    }

    /* The name of a resource, which is made on its first use. */
    named(kind, key, make) {
      if (!this.ids.has(key)) {
        const name = `/${kind[0]}${this.ids.size}`;
        this.resources[kind] += `${name} ${make()} `;
        this.ids.set(key, name);
      }
      return this.ids.get(key);
    }

    font({ name, file, size, box, ascent, descent, glyphs }) {
      return this.named("Font", name, () => {
        const data = this.add(`/Filter /FlateDecode /Length1 ${size}`, bytesOf(file));
        const metrics = `/FontBBox [${box.join(" ")}] /Ascent ${ascent} /Descent ${descent} /CapHeight ${ascent} /ItalicAngle 0 /StemV 80`;
        const about = this.add(`/Type /FontDescriptor /FontName /${name} /Flags 4 ${metrics} /FontFile2 ${data} 0 R`);
        const all = Object.entries(glyphs);
        const widths = all.map(([, [glyph, width]]) => `${glyph} [${width}]`).join(" ");
        const system = "/CIDSystemInfo <</Registry (Adobe) /Ordering (Identity) /Supplement 0>>";
        const outlines = this.add(
          `/Type /Font /Subtype /CIDFontType2 /BaseFont /${name} ${system} /FontDescriptor ${about} 0 R /CIDToGIDMap /Identity /W [${widths}]`,
        );
        const unicode = all.map(([char, [glyph]]) => `1 beginbfchar <${inHex(glyph)}> <${inHex(char.codePointAt(0))}> endbfchar\n`);
        const map = `/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /U def /CMapType 2 def
1 begincodespacerange <0000> <ffff> endcodespacerange\n${unicode.join("")}endcmap end end`;
        const text = this.add("", new TextEncoder().encode(map));
        return `${this.add(
          `/Type /Font /Subtype /Type0 /BaseFont /${name} /Encoding /Identity-H /DescendantFonts [${outlines} 0 R] /ToUnicode ${text} 0 R`,
        )} 0 R`;
      });
    }

    /* The file, of one page with this size in points. */
    async blob(width, height) {
      const page = await deflated(new TextEncoder().encode(this.commands.join("\n")));
      const content = this.add("/Filter /FlateDecode", page);
      const resources = Object.entries(this.resources).map(([kind, entries]) => `/${kind} <<${entries}>>`).join(" ");
      const parent = this.objects.length + 2;
      const only = this.add(
        `/Type /Page /Parent ${parent} 0 R /MediaBox [0 0 ${numbers(width, height)}] /Contents ${content} 0 R /Resources <<${resources}>>`,
      );
      const root = (this.add(`/Type /Pages /Kids [${only} 0 R] /Count 1`), this.add(`/Type /Catalog /Pages ${parent} 0 R`));
      const parts = [], places = [];
      let length = 0;
      const write = (part) => (parts.push(part), (length += part.length));
      write("%PDF-1.5\n");
      for (const [at, [dictionary, bytes]] of this.objects.entries()) {
        places.push(length);
        write(`${at + 1} 0 obj\n${dictionary}\n`);
        if (bytes) for (const part of ["stream\n", bytes, "\nendstream\n"]) write(part);
        write("endobj\n");
      }
      const start = length;
      const table = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
      write(`xref\n0 ${places.length + 1}\n0000000000 65535 f \n${table}trailer\n<</Size ${places.length + 1} /Root ${root} 0 R>>\n`);
      write(`startxref\n${start}\n%%EOF\n`);
      return new Blob(parts, { type: "application/pdf" });
    }

    /* A path's data under a matrix. */
    outline(data, matrix) {
      const words = data.match(/[A-Z]|-?[\d.]+(?:e-?\d+)?/g) ?? [];
      const place = (x, y) => numbers(matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f);
      const done = [];
      let at = 0, command = "", x = 0, y = 0;
      const next = () => Number(words[at++]);
      while (at < words.length) {
        if (/[A-Z]/.test(words[at])) command = words[at++];
        if (command === "Z") done.push("h");
        else if (command === "C") {
          const ends = [1, 2, 3].map(() => ([x, y] = [next(), next()], place(x, y)));
          done.push(`${ends.join(" ")} c`);
        } else if (command === "Q") {
          const [a, b, [u, v]] = [x, y, [next(), next()]];
          [x, y] = [next(), next()];
          done.push(`${place((a + 2 * u) / 3, (b + 2 * v) / 3)} ${place((x + 2 * u) / 3, (y + 2 * v) / 3)} ${place(x, y)} c`);
        } else {
          if (command !== "V") x = next();
          if (command !== "H") y = next();
          done.push(`${place(x, y)} ${command === "M" ? "m" : "l"}`);
          if (command === "M") command = "L";
        }
      }
      return done.join(" ");
    }

    /* Draw an element under the matrix of its surroundings. */
    async draw(element, matrix, fonts) {
      const own = element.transform?.baseVal.consolidate()?.matrix;
      const here = own ? matrix.multiply(DOMMatrix.fromMatrix(own)) : matrix;
      const style = getComputedStyle(element);
      this.commands.push("q");
      const clip = element.getAttribute("clip-path")?.match(/#([^)"]*)/);
      if (clip) for (const shape of element.ownerSVGElement.getElementById(clip[1])?.children ?? []) this.clip(shape, here);
      if (element.localName === "path") this.path(element, here, style);
      else if (element.localName === "text") this.text(element, here, style, fonts);
      else if (element.localName === "image") await this.image(element, here);
      else if (element.localName === "g") for (const child of element.children) await this.draw(child, here, fonts);
      this.commands.push("Q");
    }

    clip(shape, matrix) {
      const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(shape.getAttribute(name)));
      const data = shape.localName === "rect" ? `M${x} ${y}H${x + width}V${y + height}H${x}Z` : shape.getAttribute("d");
      this.commands.push(`${this.outline(data, matrix)} W n`);
    }

    paint(style) {
      const [fill, stroke] = [style.fill, style.stroke].map((one) => one.match(/[\d.]+/g)?.map(Number));
      const alpha = ["fillOpacity", "strokeOpacity"].map((name) => Number(style[name]) * Number(style.opacity));
      if (alpha.some((value) => value < 1))
        this.commands.push(`${this.named("ExtGState", `alpha ${alpha}`, () => `<</ca ${alpha[0]} /CA ${alpha[1]}>>`)} gs`);
      const colour = (values, operator) => values && this.commands.push(`${numbers(...values.slice(0, 3).map((v) => v / 255))} ${operator}`);
      colour(fill, "rg");
      colour(stroke, "RG");
      return `${fill ? "f" : ""}${stroke ? "S" : ""}`;
    }

    path(element, matrix, style) {
      const how = { f: "f", S: "S", fS: "B" }[this.paint(style)];
      if (!how) return;
      const scale = Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c));
      const dashes = (style.strokeDasharray.match(/[\d.]+/g) ?? []).map((one) => scale * one);
      const cap = { butt: 0, round: 1, square: 2 }[style.strokeLinecap];
      const line = `${numbers(scale * parseFloat(style.strokeWidth))} w 1 j ${cap} J [${numbers(...dashes)}] 0 d`;
      this.commands.push(`${line} ${this.outline(element.getAttribute("d"), matrix)} ${how}`);
    }

    text(element, matrix, style, fonts) {
      const font = (style.fontWeight >= 600 && fonts.bold) || fonts.regular;
      if (!font) return;
      const glyphs = [...element.textContent.trim()].map((char) => font.glyphs[char] ?? [0, 600]);
      const size = parseFloat(style.fontSize);
      const width = (glyphs.reduce((sum, [, one]) => sum + one, 0) * size) / 1000;
      const left = { middle: width / 2, end: width }[style.textAnchor] ?? 0;
      const [x, y] = ["x", "y"].map((name) => Number(element.getAttribute(name)));
      const { a, b, c, d, e, f } = matrix.translate(x - left, y).scale(1, -1);
      this.paint(style);
      const shown = glyphs.map(([glyph]) => inHex(glyph)).join("");
      this.commands.push(`BT ${this.font(font)} ${numbers(size)} Tf ${numbers(a, b, c, d, e, f)} Tm <${shown}> Tj ET`);
    }

    async image(element, matrix) {
      const image = new Image();
      image.src = element.getAttributeNS(HREF, "href");
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
      const context = canvas.getContext("2d");
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0);
      const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data.filter((_, at) => at % 4 !== 3);
      const look = `/Width ${canvas.width} /Height ${canvas.height} /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /FlateDecode`;
      const number = this.add(`/Type /XObject /Subtype /Image ${look}`, await deflated(pixels));
      const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => parseFloat(element.getAttribute(name)) || 0);
      const { a, b, c, d, e, f } = matrix.multiply(new DOMMatrix([width, 0, 0, -height, x, y + height]));
      this.commands.push(`${numbers(a, b, c, d, e, f)} cm ${this.named("XObject", `image ${number}`, () => `${number} 0 R`)} Do`);
    }
  }

  const pdfOf = async (svg, fonts) => {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const drawn = document.importNode(svg, true);
    for (const use of drawn.querySelectorAll("use")) {
      const group = document.createElementNS(SVG, "g");
      group.setAttribute("style", use.getAttribute("style") ?? "");
      group.setAttribute("transform", `translate(${use.getAttribute("x") || 0} ${use.getAttribute("y") || 0})`);
      const shape = drawn.getElementById(use.getAttributeNS(HREF, "href").slice(1));
      if (shape) group.append(shape.cloneNode(true));
      use.replaceWith(group);
    }
    const stage = document.body.appendChild(document.createElement("div"));
    stage.className = "stage";
    stage.append(drawn);
    try {
      const pdf = new Pdf();
      for (const child of drawn.children) await pdf.draw(child, new DOMMatrix([1, 0, 0, -1, 0, height]), fonts);
      return await pdf.blob(width, height);
    } finally {
      stage.remove();
    }
  };

  /* Links below a figure that save it and its values, made when they are reached; the drawing in the colours for paper. */
  const ENDINGS = { SVG: "svg", PDF: "pdf", CSV: "csv", LaTeX: "tex" };
  const fonts = JSON.parse(document.currentScript.dataset.fonts || "null");
  const onPaper = (source) =>
    cleaned(new DOMParser().parseFromString(coloured(decoded(source), "light"), "image/svg+xml").documentElement, "");
  const contents = (svg) => {
    const rows = tabled(svg);
    const csv = rows.map((row) => `${row.map(inCsv).join(",")}\n`).join("");
    return { SVG: new XMLSerializer().serializeToString(svg), CSV: csv, LaTeX: booktabs(rows) };
  };
  const offer = (figure, number) => {
    const source = figure.querySelector("img").src;
    if (!source.startsWith(START)) return;
    const line = document.createElement("p");
    line.className = "save";
    const kinds = [...(fonts ? ["SVG", "PDF"] : ["SVG"]), ...(figure.querySelector("[data-points], [data-grid]") ? ["CSV", "LaTeX"] : [])];
    for (const name of kinds) {
      const link = line.appendChild(document.createElement("a"));
      link.textContent = name;
      link.download = `figure-${number + 1}.${ENDINGS[name]}`;
      link.href = "data:,";
    }
    const fill = () => {
      const made = contents(onPaper(source));
      for (const link of line.children)
        if (link.textContent in made) link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(made[link.textContent])}`;
    };
    line.addEventListener("click", async (event) => {
      if (event.target.textContent !== "PDF" || event.target.href.startsWith("blob:")) return;
      event.preventDefault();
      event.target.href = URL.createObjectURL(await pdfOf(onPaper(source), fonts));
      event.target.click();
    });
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
