"use strict";
(() => {
  const every = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (name, properties = {}) => Object.assign(document.createElement(name), properties);
  const draw = (name, attributes = {}) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // Tables: a button in each heading sorts, a button in each row marks that row in every table.
  const textOf = (row, column) => row.cells[column].textContent.trim();
  const numberOf = (row, column) => Number(row.cells[column].dataset.v || NaN);
  const sortBy = (table, column, direction, original) => {
    const sign = direction === "ascending" ? 1 : -1;
    const words = original.every((row) => Number.isNaN(numberOf(row, column)));
    const rows = direction === "none" ? original : [...original].sort((one, other) => {
      if (words) return sign * textOf(one, column).localeCompare(textOf(other, column), undefined, { numeric: true });
      const a = numberOf(one, column), b = numberOf(other, column);
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);  // no number: last, always
      return sign * (a - b);
    });
    table.tBodies[0].append(...rows);
  };
  const nextOf = { none: "ascending", ascending: "descending", descending: "none" };
  for (const table of every("table.sortable")) {
    const original = [...table.tBodies[0].rows];
    const heads = every("thead th", table);
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const direction = nextOf[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", direction);
        sortBy(table, column, direction, original);
      });
    });
    for (const row of original) {
      const head = row.cells[0];
      const button = make("button", { type: "button" });
      button.append(...head.childNodes);
      button.setAttribute("aria-pressed", "false");
      head.append(button);
    }
    table.tBodies[0].addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      const name = row.cells[0].textContent;
      const marked = !row.classList.contains("marked");
      for (const other of every("table.sortable tbody tr")) {
        if (other.cells[0].textContent !== name) continue;
        other.classList.toggle("marked", marked);
        other.querySelector("button").setAttribute("aria-pressed", String(marked));
      }
    });
  }
  for (const hint of every(".hint")) hint.hidden = false;

  // Contents: the entry of the part at the top of the window is marked, and a link opens the table that it leads to.
  const links = every(".toc a");
  const targets = links.map((link) => document.getElementById(link.hash.slice(1)));
  const markPlace = () => {
    const tops = targets.map((target) => target.getBoundingClientRect().top);
    const atEnd = scrollY > 0 && innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const here = atEnd ? links.length - 1 : Math.max(0, tops.findLastIndex((top) => top < innerHeight / 3));
    links.forEach((link, place) => {
      if (place === here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    });
  };
  let waiting = false;
  addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(() => { waiting = false; markPlace(); });
    waiting = true;
  }, { passive: true });
  links.forEach((link, place) => link.addEventListener("click", () => {
    if (targets[place].matches("details")) targets[place].open = true;
  }));
  markPlace();

  // Instances: the tables that stand in the page become one browser with a picture.
  const browser = document.getElementById("browser");
  if (browser) {
    const datasets = every("details.dataset");
    const [pickDataset, pickInstance, chart, numbers, bestBy, boxes] =
      ["pick-dataset", "pick-instance", "chart", "numbers", "best-by", "pick-candidates"].map((id) => document.getElementById(id));
    const hidden = new Set();
    const shapes = {
      o: (x, y) => draw("circle", { cx: x, cy: y, r: 4 }),
      s: (x, y) => draw("rect", { x: x - 3.6, y: y - 3.6, width: 7.2, height: 7.2 }),
      "^": (x, y) => draw("path", { d: `M${x} ${y - 4.6}l4.6 8h-9.2z` }),
      v: (x, y) => draw("path", { d: `M${x} ${y + 4.6}l4.6 -8h-9.2z` }),
      D: (x, y) => draw("path", { d: `M${x} ${y - 5}l5 5l-5 5l-5 -5z` }),
      P: (x, y) => draw("path", { d: `M${x - 1.7} ${y - 4.8}h3.4v3.1h3.1v3.4h-3.1v3.1h-3.4v-3.1h-3.1v-3.4h3.1z` }),
      X: (x, y) => draw("path", { d: `M${x - 4} ${y - 4}l8 8M${x - 4} ${y + 4}l8 -8`, "stroke-width": 2.4, stroke: "#767676" }),
    };
    const mark = (shape, x, y, colour) => {
      const element = (shapes[shape] || shapes.o)(x, y);
      element.setAttribute("fill", colour);
      return element;
    };
    const read = (table) => ({
      row: table.dataset.row,
      names: every("thead th", table).slice(2).map((head) => ({ name: head.textContent, colour: head.dataset.c, shape: head.dataset.m })),
      labels: every("tbody tr", table).map((row) => ({
        name: row.cells[0].textContent, real: Number(row.cells[1].textContent),
        predicted: [...row.cells].slice(2).map((cell) => Number(cell.textContent)),
      })),
      measures: every("tfoot tr", table).map((row) => ({
        title: row.cells[0].textContent,
        best: [...row.cells].slice(2).findIndex((cell) => cell.querySelector("strong")),
      })),
    });
    const picture = (instance) => {
      const width = Math.max(280, Math.min(chart.clientWidth || 800, 900));
      const names = Math.min(170, width * 0.36), step = 24, top = 8, bottom = 34;
      const height = top + bottom + step * instance.labels.length;
      const shown = (list) => list.filter((value, j) => !Number.isNaN(value) && !hidden.has(instance.names[j].name));
      const most = Math.max(...instance.labels.flatMap((label) => [label.real, ...shown(label.predicted)]), 1e-9);
      const scale = (value) => names + (width - names - 14) * value / most;
      const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "font-size": 12 });
      svg.setAttribute("aria-label", `Real distribution as bars, predictions as marks; the numbers follow in a table.`);
      const power = 10 ** Math.floor(Math.log10(most / 4));
      const gap = power * [1, 2, 5, 10].find((factor) => power * factor * 4.5 >= most);
      for (let value = 0; value <= most * 1.0001; value += gap) {
        const x = scale(value);
        svg.append(draw("line", { x1: x, x2: x, y1: top, y2: height - bottom, class: "faint" }));
        const tick = draw("text", { x, y: height - bottom + 15, "text-anchor": "middle", fill: "currentColor" });
        tick.textContent = String(Number(value.toPrecision(3)));
        svg.append(tick);
      }
      const axis = draw("text", { x: (names + width) / 2, y: height - 3, "text-anchor": "middle", fill: "currentColor" });
      axis.textContent = "description degree";
      svg.append(axis);
      instance.labels.forEach((label, i) => {
        const y = top + step * (i + 0.5);
        svg.append(draw("rect", { x: names, y: y - 8, width: scale(label.real) - names, height: 16, class: "bar" }));
        const word = draw("text", { x: names - 6, y: y + 4, "text-anchor": "end", fill: "currentColor" });
        const room = Math.floor(names / 8), end = Math.floor(room / 3), long = label.name.length > room;
        word.textContent = long ? label.name.slice(0, room - 1 - end) + "…" + label.name.slice(-end) : label.name;
        svg.append(word);
        label.predicted.forEach((value, j) => {
          const { name, colour, shape } = instance.names[j];
          if (!Number.isNaN(value) && !hidden.has(name)) svg.append(mark(shape, scale(value), y, colour));
        });
      });
      return svg;
    };
    const tables = () => every("table.instance", datasets[pickDataset.selectedIndex]);
    const show = () => {
      const table = tables()[pickInstance.selectedIndex];
      const instance = read(table);
      chart.replaceChildren(picture(instance));
      numbers.replaceChildren(table.cloneNode(true));
      const best = instance.measures.filter((measure) => measure.best >= 0)
        .map((measure) => `${measure.title}: ${instance.names[measure.best].name}`);
      bestBy.textContent = `${datasets[pickDataset.selectedIndex].dataset.name}, instance ${instance.row}. Best by ${best.join(", ")}.`;
    };
    const chooseDataset = () => {
      pickInstance.replaceChildren(...tables().map((table) => make("option", { textContent: table.dataset.row })));
      const names = read(tables()[0]).names;
      boxes.replaceChildren(...names.map(({ name, colour, shape }) => {
        const label = make("label"), box = make("input", { type: "checkbox", checked: !hidden.has(name) });
        const sign = draw("svg", { width: 14, height: 14, "aria-hidden": "true" });
        sign.append(mark(shape, 7, 7, colour));
        box.addEventListener("change", () => { if (box.checked) hidden.delete(name); else hidden.add(name); show(); });
        label.append(box, sign, name);
        return label;
      }));
      show();
    };
    const move = (by) => {
      const count = pickInstance.options.length;
      pickInstance.selectedIndex = (pickInstance.selectedIndex + by + count) % count;
      show();
    };
    pickDataset.append(...datasets.map((part) => make("option", { textContent: part.dataset.name })));
    pickDataset.addEventListener("change", chooseDataset);
    pickInstance.addEventListener("change", show);
    document.getElementById("previous").addEventListener("click", () => move(-1));
    document.getElementById("next").addEventListener("click", () => move(1));
    browser.hidden = false;
    document.getElementById("all-instances").hidden = true;
    chooseDataset();
    let width = chart.clientWidth;
    addEventListener("resize", () => { if (chart.clientWidth !== width) { width = chart.clientWidth; show(); } });
  }

  // On paper every table is open.
  const closed = every("details:not(.dataset):not([open])");
  addEventListener("beforeprint", () => closed.forEach((part) => { part.open = true; }));
  addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));
})();
