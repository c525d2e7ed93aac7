"use strict";
(() => {
  const { boards } = JSON.parse(document.getElementById("data").textContent);
  const filters = document.getElementById("filters");
  const words = document.getElementById("filter-words");
  const choices = ["dataset", "setting", "method", "category", "backbone", "pretraining"]
    .map((name) => [name, document.getElementById(`filter-${name}`)])
    .filter(([, select]) => select);
  const boxes = [...document.querySelectorAll("#filter-columns input")];
  const shown = document.getElementById("filter-shown");
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  class Board {
    constructor(section) {
      this.section = section;
      this.link = document.querySelector(`nav.boards a[href="#${CSS.escape(section.id)}"]`)?.parentElement;
      this.data = boards[Number(section.dataset.board)];
      this.box = section.querySelector(".scroll");
      this.bodies = [...section.querySelector("table").tBodies];
      this.heads = [...section.querySelectorAll("thead th[data-column]")];
      this.rows = this.bodies.flatMap((body) => [...body.rows]).filter((row) => row.dataset.row ?? row.dataset.rows);
      this.single = [...section.querySelectorAll("details.settings tr[data-row]")];
      this.links = [...section.querySelectorAll("a[data-file]")];
      this.heads.forEach((head) => this.addButton(head));
    }

    /* A head becomes a button that holds what the head held. */
    addButton(head) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => this.sort(head));
    }

    /* The better end first, the other one on the second click; rows without a value always stand last in their section. */
    sort(head) {
      const name = head.dataset.column;
      const first = name === "records" || this.data.columns[name] === "up" ? "descending" : "ascending";
      const now = head.getAttribute("aria-sort");
      const order = now === null ? first : now === "ascending" ? "descending" : "ascending";
      this.heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      this.rows.sort((a, b) => this.missing(a, name) - this.missing(b, name) || sign * this.compare(a, b, name));
      for (const body of this.bodies) body.append(...this.rows.filter((row) => row.parentElement === body));
      this.rows = this.bodies.flatMap((body) => this.rows.filter((row) => row.parentElement === body));
      this.refresh();
    }

    /* The numbers of the rows behind a row: several, if it is a sweep. */
    numbersOf(row) {
      return (row.dataset.rows ?? row.dataset.row).split(" ").map(Number);
    }

    /* Of a sweep the row that validation chose, or else the middle of the range. */
    value(row, name) {
      const numbers = "chosen" in row.dataset ? [Number(row.dataset.chosen)] : this.numbersOf(row);
      const values = numbers.map((number) => this.data.rows[number].numbers[name]).filter((value) => value !== null);
      if (!values.length) return null;
      return name === "records" ? values.reduce((sum, value) => sum + value, 0) : (Math.min(...values) + Math.max(...values)) / 2;
    }

    text(row) {
      return this.data.rows[this.numbersOf(row)[0]].text;
    }

    missing(row, name) {
      return name in this.text(row) || this.value(row, name) !== null ? 0 : 1;
    }

    compare(a, b, name) {
      if (name in this.text(a)) return collator.compare(this.text(a)[name], this.text(b)[name]);
      return (this.value(a, name) ?? 0) - (this.value(b, name) ?? 0);
    }

    filter(wanted) {
      this.wanted = new Set(this.data.rows.flatMap((row, number) => (wanted(row) ? [number] : [])));
      for (const row of [...this.rows, ...this.single]) row.hidden = !this.numbersOf(row).some((number) => this.wanted.has(number));
      for (const body of this.bodies) body.hidden = this.rows.every((row) => row.hidden || row.parentElement !== body);
      const left = this.rows.filter((row) => !row.hidden).length;
      this.section.hidden = left === 0;
      if (this.link) this.link.hidden = left === 0;
      this.refresh();
      return left;
    }

    /* A picture belongs to the column before it. Hidden columns are printed. */
    choose(names) {
      this.names = names;
      let shown = true;
      const off = [...this.heads[0].parentElement.cells].map((head) => {
        if (head.dataset.column) shown = names.has(head.dataset.column);
        return !shown;
      });
      for (const row of [this.heads[0].parentElement, ...this.rows])
        [...row.cells].forEach((cell, place) => cell.classList.toggle("off", off[place]));
      for (const fold of this.section.querySelectorAll("details.settings")) {
        const hidden = [...fold.querySelectorAll("thead th")].map(({ dataset }) => Boolean(dataset.column) && !names.has(dataset.column));
        for (const row of fold.querySelectorAll("tr")) [...row.cells].forEach((cell, place) => cell.classList.toggle("off", hidden[place]));
      }
      this.refresh();
    }

    /* Downloads hold the rows and columns that are shown, in the order in which they are shown. */
    refresh() {
      const rows = this.rows.filter((row) => !row.hidden).flatMap((row) => this.numbersOf(row));
      const shown = this.wanted ? rows.filter((row) => this.wanted.has(row)) : rows;
      const written = (pieces, row) =>
        pieces
          .filter(([, column]) => !column || !this.names || this.names.has(column))
          .map(([text, column, best]) => (best && this.isBest(row, column, shown) ? best : text));
      for (const link of this.links) {
        const file = this.data.files[Number(link.dataset.file)];
        const pieces = shown.flatMap((row) => written(file.rows[row], row));
        const text = written(file.head).join("") + (file.once ? [...new Set(pieces)] : pieces).join("") + file.foot;
        link.href = `data:${file.media};charset=utf-8,${encodeURIComponent(text)}`;
      }
    }

    /* Among the rows that are shown and compete in the column: those whose piece has a text for the best. */
    isBest(row, column, rows) {
      const sign = this.data.columns[column] === "up" ? 1 : -1;
      const competing = rows.filter((other) => this.data.files.some((file) => file.rows[other].some(([, name, best]) => name === column && best)));
      const means = competing.map((other) => sign * this.data.rows[other].numbers[column]);
      return sign * this.data.rows[row].numbers[column] === Math.max(...means);
    }
  }

  const all = [...document.querySelectorAll("section[data-board]")].map((section) => new Board(section));
  const total = all.reduce((sum, board) => sum + board.rows.length, 0);

  const filter = () => {
    const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const value = (row, name) => (name === "method" ? row.method : row.place[name] ?? row.text[name]);
    const wanted = (row) =>
      parts.every((part) => row.words.includes(part)) && choices.every(([name, select]) => !select.value || select.value === value(row, name));
    const left = all.reduce((sum, board) => sum + board.filter(wanted), 0);
    shown.textContent = left === 0 ? "No row matches" : left === total ? `${total} rows` : `${left} of ${total} rows`;
    keep();
  };

  const chosen = new Set(["method", "rank", "records"]);
  const choose = () => {
    for (const box of boxes) chosen[box.checked ? "add" : "delete"](box.value);
    all.forEach((board) => board.choose(chosen));
    keep();
  };

  /* What is filtered and chosen stands in the address, so that a view can be sent to somebody. */
  let first = "";
  const keep = () => {
    const state = new URLSearchParams();
    if (words.value) state.set("text", words.value);
    for (const [name, select] of choices) if (select.value) state.set(name, select.value);
    const columns = boxes.filter((box) => box.checked).map((box) => box.value).join(" ");
    if (first && columns !== first) state.set("columns", columns);
    const query = state.toString();
    try {
      history.replaceState(null, "", `${location.pathname}${query ? `?${query}` : ""}${location.hash}`);
    } catch {
      /* A browser may forbid this for a page from a file. */
    }
  };

  const clear = () => {
    words.value = "";
    choices.forEach(([, select]) => (select.value = ""));
    boxes.forEach((box) => (box.checked = all.some((board) => board.data.first.includes(box.value))));
  };

  if (filters && total) {
    const given = new URLSearchParams(location.search);
    clear();
    first = boxes.filter((box) => box.checked).map((box) => box.value).join(" ");
    words.value = given.get("text") ?? "";
    for (const [name, select] of choices)
      if ([...select.options].some((option) => option.value === given.get(name))) select.value = given.get(name);
    if (given.has("columns")) boxes.forEach((box) => (box.checked = given.get("columns").split(" ").includes(box.value)));
    words.addEventListener("input", filter);
    choices.forEach(([, select]) => select.addEventListener("change", filter));
    boxes.forEach((box) => box.addEventListener("change", choose));
    document.getElementById("filter-clear").addEventListener("click", () => {
      clear();
      choose();
      filter();
      words.focus();
    });
    filters.hidden = false;
    choose();
    filter();
  }

  /* What a link leads to may be folded away. */
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();
})();
