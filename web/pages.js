"use strict";
// The picture of pages: a cell for each block of 2 MiB, filled as far as it is in memory; a block opens into its pages. Ranges
// with nothing in memory are one cell. Only what is on the screen is drawn, so that a terabyte scrolls as a megabyte does.
(() => {
  const grid = marusa.data.grid;
  const canvas = document.getElementById("grid");
  if (!grid || !canvas) return;
  const scroller = document.getElementById("grid-scroll");
  const choice = document.getElementById("grid-by");
  const back = document.getElementById("grid-back");
  const status = document.getElementById("grid-at");
  const legend = document.getElementById("grid-legend");
  const PER_BLOCK = grid.block / grid.page;
  // Absent blocks in a row that are folded into one cell.
  const FOLD_MIN = 4;
  const [ABSENT, SWAPPED, FIRST_KIND] = [0, 1, 2];

  const runs = decode(grid.runs);
  const blocks = fold(runs);
  let open = null;
  let selected = 0;
  let geometry = null;
  const holder = document.createElement("div");
  scroller.append(holder);
  holder.append(canvas);

  // Four numbers to a run, in base 36: pages between, pages, owner, state.
  function decode(text) {
    const words = text === "" ? [] : text.split(" ");
    const count = words.length / 4;
    const decoded = { first: new Float64Array(count), pages: new Float64Array(count), owner: new Int32Array(count), state: new Int32Array(count) };
    let end = 0;
    for (let at = 0; at < count; at++) {
      const number = (place) => parseInt(words[4 * at + place], 36);
      decoded.first[at] = end + number(0);
      decoded.pages[at] = number(1);
      decoded.owner[at] = number(2);
      decoded.state[at] = number(3);
      end = decoded.first[at] + decoded.pages[at];
    }
    return decoded;
  }

  // What of a run's pages are in memory; of one that is only counted, as many as it says, evenly.
  function resident(state, pages, of) {
    if (state >= FIRST_KIND) return pages;
    return state < 0 ? (-state * pages) / of : 0;
  }

  function fold(all) {
    const cells = [];
    let block = null;
    const flush = () => {
      if (block) cells.push(finish(block));
      block = null;
    };
    for (let at = 0; at < all.first.length; at++) {
      let [first, left] = [all.first[at], all.pages[at]];
      const state = all.state[at];
      while (left > 0) {
        const number = Math.floor(first / PER_BLOCK);
        const whole = Math.floor(left / PER_BLOCK);
        if (state === ABSENT && first % PER_BLOCK === 0 && whole >= FOLD_MIN) {
          flush();
          cells.push({ first, pages: whole * PER_BLOCK, run: at, isFold: true, owner: all.owner[at], resident: 0, swapped: 0, mapped: whole * PER_BLOCK, kind: -1 });
          first += whole * PER_BLOCK;
          left -= whole * PER_BLOCK;
          continue;
        }
        const here = Math.min(left, PER_BLOCK - (first % PER_BLOCK));
        if (!block || block.number !== number) {
          flush();
          block = { number, run: at, owners: new Map(), kinds: new Map(), resident: 0, swapped: 0, mapped: 0 };
        }
        const inMemory = resident(state, here, all.pages[at]);
        block.mapped += here;
        block.resident += inMemory;
        if (state === SWAPPED) block.swapped += here;
        // Who has memory in the block counts before who has only addresses.
        add(block.owners, all.owner[at], inMemory * 1024 + here);
        if (state >= FIRST_KIND) add(block.kinds, state - FIRST_KIND, here);
        first += here;
        left -= here;
      }
    }
    flush();
    return cells;
  }
  function add(map, key, by) {
    map.set(key, (map.get(key) || 0) + by);
  }
  function most(map) {
    let [best, found] = [-1, -1];
    for (const [key, count] of map) if (count > best) [best, found] = [count, key];
    return found;
  }
  function finish(block) {
    return { first: block.number * PER_BLOCK, pages: PER_BLOCK, run: block.run, isFold: false, owner: most(block.owners),
      owners: block.owners.size, resident: Math.round(block.resident), swapped: block.swapped, mapped: block.mapped, kind: most(block.kinds) };
  }

  // The pages of one block, or of the start of a fold.
  function pagesOf(cell) {
    const cells = [];
    for (let at = cell.run; at < runs.first.length && runs.first[at] < cell.first + PER_BLOCK; at++) {
      const from = Math.max(cell.first, runs.first[at]);
      const end = Math.min(cell.first + PER_BLOCK, runs.first[at] + runs.pages[at]);
      const state = runs.state[at];
      for (let page = from; page < end; page++) {
        cells.push({ first: page, pages: 1, owner: runs.owner[at], resident: resident(state, 1, runs.pages[at]),
          swapped: state === SWAPPED ? 1 : 0, mapped: 1, kind: state >= FIRST_KIND ? state - FIRST_KIND : -1, isFold: false });
      }
    }
    return cells;
  }

  const cellsNow = () => (open ? open.cells : blocks);
  const SIDES = [24, 20, 16, 12];
  const LINES_WANTED = 14;
  // Small accounts have large cells.
  function side() {
    if (open) return 22;
    const width = Math.max(120, scroller.clientWidth);
    return SIDES.find((edge) => Math.ceil(blocks.length / Math.max(1, Math.floor(width / edge))) <= LINES_WANTED) || SIDES[SIDES.length - 1];
  }

  const KIND_COLOURS = ["#a9b8c6", "#6fa8d6", "#0072b2", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#59260b"];
  function palette() {
    const areas = marusa.data.areas.map((area) => marusa.colour(area.key));
    const steps = [0, 1, 2, 3, 4].map((step) => marusa.variable("--r-" + step));
    return { areas, steps, soft: marusa.variable("--r-0"), paper: marusa.variable("--paper"),
      ink: marusa.variable("--ink"), dim: marusa.variable("--dim") };
  }
  const kindColour = (kind) => KIND_COLOURS[kind % KIND_COLOURS.length];

  function colourOf(cell, colours) {
    const share = cell.mapped > 0 ? cell.resident / cell.mapped : 0;
    if (choice.value === "residency") {
      return colours.steps[share === 0 ? 0 : Math.min(4, 1 + Math.floor(share * 3.999))];
    }
    if (choice.value === "size") return cell.kind < 0 ? colours.soft : kindColour(cell.kind);
    return colours.areas[grid.owners[cell.owner][0]];
  }

  function measure() {
    const width = Math.max(120, scroller.clientWidth);
    const columns = Math.max(1, Math.floor(width / side()));
    const lines = Math.ceil(cellsNow().length / columns);
    const height = Math.min(Math.max(1, lines) * side(), Math.max(200, Math.floor(innerHeight * 0.6)));
    geometry = { width, columns, lines, height };
    holder.style.height = Math.max(1, lines) * side() + "px";
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    draw();
  }

  function draw() {
    const context = canvas.getContext("2d");
    const colours = palette();
    const cells = cellsNow();
    const edge = side();
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, geometry.width, geometry.height);
    const top = scroller.scrollTop;
    const first = Math.floor(top / edge) * geometry.columns;
    const end = Math.min(cells.length, (Math.ceil((top + geometry.height) / edge) + 1) * geometry.columns);
    for (let at = first; at < end; at++) {
      const x = (at % geometry.columns) * edge;
      const y = Math.floor(at / geometry.columns) * edge - top;
      cell(context, cells[at], x, y, edge - 1, colours);
      if (at === selected) {
        context.strokeStyle = colours.ink;
        context.lineWidth = 2;
        context.strokeRect(x, y, edge - 1, edge - 1);
      }
    }
  }

  function cell(context, cell, x, y, edge, colours) {
    const colour = colourOf(cell, colours);
    context.fillStyle = colours.soft;
    context.fillRect(x, y, edge, edge);
    if (cell.isFold) {
      context.strokeStyle = colours.dim;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x, y + edge);
      context.lineTo(x + edge, y);
      context.stroke();
      return;
    }
    const share = cell.mapped > 0 ? cell.resident / cell.mapped : 0;
    const height = choice.value === "residency" ? edge : Math.max(share > 0 ? 2 : 0, edge * share);
    context.fillStyle = colour;
    context.fillRect(x, y + edge - height, edge, height);
    if (choice.value === "owner" && share === 0) {
      // Addresses without memory.
      context.globalAlpha = 0.25;
      context.fillRect(x, y, edge, edge);
      context.globalAlpha = 1;
    }
    if (cell.swapped > 0) hatch(context, x, y, edge, Math.max(3, (edge * cell.swapped) / cell.mapped), colours);
  }

  // Swapped: stripes, on whatever colour.
  function hatch(context, x, y, width, height, colours) {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.fillStyle = colours.paper;
    context.fillRect(x, y, width, height);
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    context.beginPath();
    for (let from = -height; from < width; from += 4) {
      context.moveTo(x + from, y + height);
      context.lineTo(x + from + height, y);
    }
    context.stroke();
    context.restore();
  }

  const address = (page) => "0x" + (BigInt(page) * BigInt(grid.page)).toString(16);
  function describe(at) {
    const cell = cellsNow()[at];
    if (!cell) return "";
    const [area, part, isShared] = grid.owners[cell.owner];
    const owner = marusa.data.areas[area].title + ": " + part + (isShared || cell.owners > 1 ? " and others" : "");
    const place = address(cell.first) + ", " + marusa.human(cell.pages * grid.page);
    if (cell.isFold) return place + " reserved, nothing of it in memory. " + owner;
    const state = cell.swapped > 0 ? marusa.human(cell.swapped * grid.page) + " swapped, " : "";
    const kind = cell.kind >= 0 ? " on pages " + grid.kinds[cell.kind].name : "";
    return place + ": " + state + marusa.human(Math.round(cell.resident) * grid.page) + " in memory" + kind + ". " + owner;
  }

  function select(at, isShown) {
    selected = Math.min(Math.max(0, at), cellsNow().length - 1);
    status.textContent = describe(selected);
    if (isShown) {
      const y = Math.floor(selected / geometry.columns) * side();
      if (y < scroller.scrollTop) scroller.scrollTop = y;
      if (y + side() > scroller.scrollTop + geometry.height) scroller.scrollTop = y + side() - geometry.height;
    }
    draw();
  }

  function enter() {
    if (open || !blocks[selected]) return;
    open = { from: selected, scroll: scroller.scrollTop, cells: pagesOf(blocks[selected]) };
    canvas.setAttribute("aria-label", "Pages of the block at " + address(blocks[selected].first));
    back.hidden = false;
    selected = 0;
    showLegend();
    measure();
    select(0, true);
  }
  function leave() {
    if (!open) return;
    const { from, scroll } = open;
    open = null;
    canvas.setAttribute("aria-label", "Blocks of the address space");
    back.hidden = true;
    showLegend();
    measure();
    scroller.scrollTop = scroll;
    select(from, true);
  }

  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / side());
    const line = Math.floor((event.clientY - box.top + scroller.scrollTop) / side());
    const at = line * geometry.columns + column;
    return column < geometry.columns && at < cellsNow().length ? at : null;
  }
  let waiting = false;
  const soon = (run) => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      run();
    }, 16);
  };

  function showLegend() {
    const entries = [];
    if (choice.value === "owner") {
      const seen = new Set(grid.owners.map(([area]) => area));
      marusa.data.areas.forEach((area, index) => seen.has(index) && entries.push([marusa.colour(area.key), area.title]));
    } else if (choice.value === "size") {
      grid.kinds.forEach((kind, index) => entries.push([kindColour(index), kind.name]));
    } else {
      ["nothing", "some", "half", "most", "all"].forEach((name, step) => entries.push([marusa.variable("--r-" + step), name + " in memory"]));
    }
    if (blocks.some((block) => block.swapped > 0)) entries.push([null, "swapped", "striped"]);
    if (!open && blocks.some((block) => block.isFold)) entries.push([null, "a range with nothing in memory, folded", "folded"]);
    legend.replaceChildren(...entries.map(([colour, name, look]) => {
      const item = document.createElement("li");
      const swatch = marusa.element("span", "", { class: look ? "swatch " + look : "swatch", "aria-hidden": "true" });
      if (colour) swatch.style.background = colour;
      item.append(swatch, name);
      return item;
    }));
  }

  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -geometry.columns, ArrowDown: geometry.columns,
      PageUp: -10 * geometry.columns, PageDown: 10 * geometry.columns, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined) select(selected + step, true);
    else if (event.key === "Enter") enter();
    else if (event.key === "Escape" && open) leave();
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => soon(() => {
    const at = cellAt(event);
    if (at !== null) status.textContent = describe(at);
  }));
  canvas.addEventListener("click", (event) => {
    const at = cellAt(event);
    if (at === null) return;
    const isAgain = at === selected;
    select(at, false);
    if (isAgain && event.detail >= 2) enter();
  });
  back.addEventListener("click", () => {
    leave();
    canvas.focus();
  });
  choice.addEventListener("change", () => {
    showLegend();
    draw();
  });
  scroller.addEventListener("scroll", () => soon(draw), { passive: true });
  // In the next frame: a change of size within the observer would be seen by it again.
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (geometry.width !== Math.max(120, scroller.clientWidth)) measure();
  })).observe(scroller);
  marusa.listeners.push(() => {
    showLegend();
    draw();
  });
  showLegend();
  measure();
  select(0, false);
  canvas.dataset.blocks = String(blocks.length);
})();
