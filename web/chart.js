"use strict";
// Areas over time, on top of each other or as lines, by uPlot. Zoom: drag, wheel, + and -. Move: Shift and drag, arrow keys. A click
// chooses the moment at which the comparison ends, with Ctrl the one at which it begins.
(() => {
  const HEIGHT = 380;
  const MOMENTS_MIN = 5;
  const TEXT_MAX = 48;
  const DASHES = [[6, 4], [12, 4], [2, 3], [8, 3, 2, 3], [1, 2], [16, 6]];
  const LAST_SECONDS = 60;
  // By the distance of ticks in seconds: each tick, and what is added where year, month, day, hour, minute or second begin anew.
  const DAY = "\n{YYYY}-{MM}-{DD}";
  const TIMES = [
    [86400 * 28, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
    [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", DAY, null, DAY, null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", DAY, null, DAY, null, null, null, 1],
    [0.001, ":{ss}.{fff}", DAY + " {HH}:{mm}", null, DAY + " {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
  ];

  class Chart {
    constructor(holder) {
      this.holder = holder;
      this.number = Number(holder.dataset.history);
      this.toolbar = holder.parentElement.querySelector(".toolbar");
      this.history = marusa.history(this.number);
      this.off = new Set(this.history.lines.filter((line) => !line.shown).map((line) => line.title));
      this.span = null;
      this.plot = null;
      this.wire();
      this.build();
    }

    // What is shown, from the bottom up; each with its own figures and, stacked, the height of its upper edge.
    layers() {
      const withHeap = this.box("heap");
      const isPaper = this.toolbar.querySelector("[data-areas]").value === "paper";
      const all = isPaper ? marusa.paper(this.history.areas) : this.history.areas;
      const areas = all.filter((area) => withHeap || area.key !== "java_heap");
      const stacked = this.box("stacked");
      let below = new Array(this.history.times.length).fill(0);
      return areas.map((area) => {
        const isOn = !this.off.has(area.key);
        let drawn = area.bytes;
        if (stacked && isOn) {
          drawn = area.bytes.map((bytes, at) => (bytes === null || below[at] === null ? null : below[at] + bytes));
          below = drawn;
        }
        return { area, isOn, drawn };
      });
    }

    box(name) {
      return this.toolbar.querySelector("[data-" + name + "]").checked;
    }

    build() {
      const layers = this.layers();
      const stacked = this.box("stacked");
      const dim = marusa.variable("--dim");
      const rule = marusa.variable("--rule");
      // Where no moment is pointed at, the last that is shown.
      const pointed = (at) => (at === null || at === undefined ? this.lastShown() : at);
      const series = [{ label: "at", value: (_, __, ___, at) => marusa.date(this.history.times[pointed(at)]) }];
      for (const layer of layers) {
        const colour = marusa.colour(layer.area.key);
        series.push({
          label: layer.area.title,
          show: layer.isOn,
          stroke: colour,
          width: stacked ? 1 : 1.6,
          fill: stacked ? colour : undefined,
          points: { show: false },
          value: (_, __, ___, at) => marusa.human(layer.area.bytes[pointed(at)]),
        });
      }
      // Distinguished by their dashes.
      this.history.lines.forEach((line, index) => series.push({
        label: line.title,
        show: this.box("heap") && !this.off.has(line.title),
        stroke: marusa.variable("--ink"),
        width: 1.2,
        dash: DASHES[index % DASHES.length],
        points: { show: false },
        value: (_, __, ___, at) => marusa.human(line.bytes[pointed(at)]),
      }));
      const data = [this.history.times, ...layers.map((layer) => layer.drawn), ...this.history.lines.map((line) => line.bytes)];
      const axis = { stroke: dim, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 } };
      const options = {
        width: this.width(),
        height: HEIGHT,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        series,
        bands: stacked ? bands(layers) : [],
        scales: { x: this.span ? { time: true, min: this.span[0], max: this.span[1] } : { time: true },
          y: { range: (_, __, most) => [0, most > 0 ? most * 1.04 : 1] } },
        axes: [{ ...axis, values: TIMES, space: 90 }, { ...axis, size: 78, space: 50, values: (_, ticks) => figures(ticks),
          incrs: increments() }],
        cursor: { drag: { x: true, y: false }, bind: { mousedown: (_, __, handle) => (event) => (event.shiftKey ? null : handle(event)) } },
        hooks: {
          setScale: [(plot, key) => { if (key === "x") this.seen(plot.scales.x); }],
          setSeries: [(_, index, how) => { if (index !== null && how.show !== undefined) this.toggle(layers, index, how.show); }],
          draw: [(plot) => this.marks(plot)],
        },
      };
      if (this.plot) this.plot.destroy();
      this.plot = new uPlot(options, data, this.holder);
      this.legend(layers);
      this.pointer();
    }

    lastShown() {
      const times = this.history.times;
      let at = times.length - 1;
      while (this.span && at > 0 && times[at] > this.span[1]) at--;
      return at;
    }

    width() {
      return Math.max(280, this.holder.clientWidth);
    }

    // The legend is a row of switches: a key does what a click does.
    legend(layers) {
      this.plot.root.querySelectorAll(".u-legend .u-series").forEach((row, index) => {
        if (index === 0) return;
        const head = row.querySelector("th");
        head.tabIndex = 0;
        head.setAttribute("role", "switch");
        head.setAttribute("aria-checked", String(this.plot.series[index].show));
        const marker = row.querySelector(".u-marker");
        const layer = layers[index - 1];
        if (marker && layer) marker.style.background = marusa.colour(layer.area.key);
        head.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          head.click();
          // After the chart was built anew.
          queueMicrotask(() => {
            const again = this.plot.root.querySelectorAll(".u-legend .u-series")[index];
            if (again) again.querySelector("th").focus();
          });
        });
      });
    }

    toggle(layers, index, isShown) {
      const key = index <= layers.length ? layers[index - 1].area.key : this.history.lines[index - layers.length - 1].title;
      if (isShown) this.off.delete(key);
      else this.off.add(key);
      // Not within the hook: the chart that calls it is replaced.
      queueMicrotask(() => this.build());
    }

    // What happened, and the two moments that are compared.
    marks(plot) {
      const { left, top, width, height } = plot.bbox;
      const { ctx } = plot;
      const GAP = 4 * devicePixelRatio;
      const place = (at) => Math.round(plot.valToPos(at, "x", true));
      const isShown = (at) => at >= plot.scales.x.min && at <= plot.scales.x.max;
      ctx.save();
      ctx.font = 11 * devicePixelRatio + "px system-ui, sans-serif";
      ctx.lineWidth = devicePixelRatio;
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      const line = (at, colour, dash) => {
        ctx.strokeStyle = ctx.fillStyle = colour;
        ctx.setLineDash(dash);
        ctx.beginPath();
        ctx.moveTo(place(at), top);
        ctx.lineTo(place(at), top + height);
        ctx.stroke();
      };
      // Behind its line, and within the chart.
      const start = (text, x) => Math.max(left, Math.min(x + GAP, left + width - ctx.measureText(text).width - GAP));
      // An end comes a moment after the last look, and stands there.
      const { times } = this.history;
      const within = (at) => Math.min(Math.max(at, times[0]), times[times.length - 1]);
      const events = this.history.events.map(({ at, text }) => ({ at: within(at), text })).filter((event) => isShown(event.at));
      for (const event of events) line(event.at, marusa.variable("--mark"), [2, 3]);
      for (const { text, x } of labels(events.map((event) => ({ x: place(event.at), text: event.text })), start,
        (text) => ctx.measureText(text).width + 2 * GAP)) ctx.fillText(text, x, top + 11 * devicePixelRatio);
      const pick = marusa.picks[this.number];
      for (const name of pick ? ["from", "to"] : []) {
        const at = times[pick[name]];
        if (!isShown(at)) continue;
        line(at, marusa.variable("--ink"), []);
        ctx.fillText(name, start(name, place(at)), top + height - GAP);
      }
      ctx.restore();
    }

    // What is shown now; also for whoever tests the page.
    seen({ min, max }) {
      this.span = [min, max];
      this.holder.dataset.from = String(min);
      this.holder.dataset.to = String(max);
      if (this.plot && this.plot.cursor.idx === null) this.plot.setLegend({ idx: null });
    }

    // Within what there is, and never closer than a few moments.
    show(from, to) {
      const times = this.history.times;
      const [first, last] = [times[0], times[times.length - 1]];
      const least = Math.min(last - first, (MOMENTS_MIN * (last - first)) / Math.max(1, times.length - 1));
      const length = Math.min(last - first, Math.max(least, to - from));
      const start = Math.min(Math.max(first, from), last - length);
      if (length > 0) this.scale(start, start + length);
    }

    move(share) {
      const { min, max } = this.plot.scales.x;
      this.show(min + (max - min) * share, max + (max - min) * share);
    }

    zoom(factor, around) {
      const { min, max } = this.plot.scales.x;
      const at = around === undefined ? (min + max) / 2 : around;
      this.show(at - (at - min) * factor, at + (max - at) * factor);
    }

    all() {
      const times = this.history.times;
      this.scale(times[0], times[times.length - 1]);
    }

    scale(min, max) {
      // The chart itself follows a moment later; it may be built anew before.
      this.span = [min, max];
      this.plot.setScale("x", { min, max });
    }

    wire() {
      for (const box of this.toolbar.querySelectorAll("input, select")) box.addEventListener("change", () => this.build());
      this.toolbar.querySelector("[data-all]").addEventListener("click", () => this.all());
      const last = this.toolbar.querySelector("[data-last]");
      const end = this.history.times[this.history.times.length - 1];
      last.addEventListener("click", () => this.show(end - LAST_SECONDS, end));
      this.holder.addEventListener("keydown", (event) => {
        const does = { ArrowLeft: () => this.move(-0.1), ArrowRight: () => this.move(0.1), "+": () => this.zoom(0.7),
          "=": () => this.zoom(0.7), "-": () => this.zoom(1.4), 0: () => this.all(), Home: () => this.all() }[event.key];
        if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        does();
      });
      // In the next frame: a change of size within the observer would be seen by it again.
      new ResizeObserver(() => requestAnimationFrame(() => {
        if (this.plot && this.holder.clientWidth > 0 && this.plot.width !== this.width()) this.plot.setSize({ width: this.width(), height: HEIGHT });
      })).observe(this.holder);
      marusa.listeners.push(() => this.build());
    }

    pointer() {
      const over = this.plot.over;
      const plot = this.plot;
      // Only where it was clicked before: else a wheel over it would hold the page up.
      over.addEventListener("wheel", (event) => {
        if (document.activeElement !== this.holder && !event.ctrlKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 0.8 : 1.25, plot.posToVal(event.offsetX, "x"));
      }, { passive: false });
      over.addEventListener("pointerdown", (event) => {
        this.holder.focus({ preventScroll: true });
        if (!event.shiftKey || event.button !== 0) return;
        const { min, max } = plot.scales.x;
        const start = event.clientX;
        const perPixel = (max - min) / over.clientWidth;
        over.setPointerCapture(event.pointerId);
        const drag = (moved) => this.show(min - (moved.clientX - start) * perPixel, max - (moved.clientX - start) * perPixel);
        const drop = () => {
          over.removeEventListener("pointermove", drag);
          over.removeEventListener("pointerup", drop);
        };
        over.addEventListener("pointermove", drag);
        over.addEventListener("pointerup", drop);
      });
      let pressed = 0;
      over.addEventListener("mousedown", (event) => { pressed = event.clientX; });
      over.addEventListener("click", (event) => {
        if (event.shiftKey || Math.abs(event.clientX - pressed) > 3 || plot.cursor.idx === null) return;
        const pick = marusa.pick(this.number);
        if (pick) pick.choose(event.ctrlKey || event.metaKey ? "from" : "to", plot.cursor.idx);
      });
    }
  }

  // Between each layer and the next that is shown.
  function bands(layers) {
    const shown = layers.map((layer, index) => (layer.isOn ? index + 1 : 0)).filter((index) => index > 0);
    return shown.slice(1).map((upper, at) => ({ series: [upper, shown[at]] }));
  }

  // One text for events whose texts would overlap: the last, which is what came of them, and how many were before; the list below
  // the chart has all.
  function labels(events, start, width) {
    const made = [];
    for (const { x, text } of events) {
      let label = { events: [text], from: x };
      for (;;) {
        const before_it = label.events.length - 1;
        label.text = shortened(label.events[before_it]) + (before_it > 0 ? " (and " + before_it + " before)" : "");
        label.x = start(label.text, label.from);
        const before = made[made.length - 1];
        if (!before || before.x + width(before.text) <= label.x) break;
        made.pop();
        label = { events: before.events.concat(label.events), from: before.from };
      }
      made.push(label);
    }
    return made;
  }
  const shortened = (text) => (text.length > TEXT_MAX ? text.slice(0, text.lastIndexOf(" ", TEXT_MAX)) + "…" : text);

  // A tick in the unit of the largest one, with no more digits than it has.
  function figures(ticks) {
    const [unit, size] = marusa.UNITS.find(([, size]) => ticks[ticks.length - 1] >= size) || ["B", 1];
    return ticks.map((tick) => (tick === 0 ? "0" : Number((tick / size).toFixed(3)) + " " + unit));
  }

  // Steps that are round in MiB and GiB.
  function increments() {
    const steps = [];
    for (let unit = 1; unit < 2 ** 50; unit *= 1024) for (const step of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) steps.push(unit * step);
    return steps;
  }

  // Drawn when they come near the screen: a page may have a hundred.
  const charts = new Map();
  marusa.redraw = (number) => {
    const chart = charts.get(number);
    if (chart) chart.plot.redraw(false);
  };
  const draw = (holder) => {
    near.unobserve(holder);
    const chart = new Chart(holder);
    charts.set(chart.number, chart);
  };
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "400px" });
  for (const holder of document.querySelectorAll(".chart[data-history]")) {
    const number = Number(holder.dataset.history);
    if (marusa.data.histories[number].ticks === "") continue;
    near.observe(holder);
    // What is unfolded is looked at, wherever it lies.
    const folded = holder.closest("details:not([open])");
    if (folded) folded.addEventListener("toggle", () => { if (!charts.has(number)) draw(holder); }, { once: true });
  }
})();
