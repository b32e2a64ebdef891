"use strict";
// The JVMs of a node, as the service that sent this page has them last. Every name comes from the programs that are looked at: it is
// put in as text. What is not known is "unknown".
(() => {
  const POLL_MS = 10000;
  const ROWS_MAX = 500;
  const PARTS_MAX = 30;
  const SVG = "http://www.w3.org/2000/svg";
  const MARKS = { critical: "▲", warn: "◆", info: "●" };
  const { element, human } = marusa;
  const by = (id) => document.getElementById(id);
  const titles = new Map(marusa.data.areas.map((area) => [area.key, area.title]));
  const isKnown = (value) => value !== null && value !== undefined;
  const bytes = (value) => (isKnown(value) ? human(value) : "unknown");
  const of = (one, other) => (isKnown(one) || isKnown(other) ? bytes(one) + " / " + bytes(other) : "unknown");
  const seconds = (value) => (!isKnown(value) ? "unknown" : value < 120 ? Math.round(value) + " s" : Math.round(value / 60) + " min");
  const place = (jvm) => [jvm.namespace, jvm.pod, jvm.container || jvm.unit].filter(isKnown).join("/") || "unknown";
  const count = (jvm, level) => jvm.findings.filter((found) => found.level === level).length;

  // A table that keeps its rows, its order and its filter while its figures change. `columns`: title, whether it is a number, the
  // cell's text, the value that it is sorted by, and what else is in it.
  class Table {
    constructor(holder, columns, what) {
      this.columns = columns;
      this.rows = new Map();
      this.by = null;
      this.table = element("table", null, { class: "data" });
      const heads = element("tr");
      columns.forEach((column, at) => {
        const head = element("th", null, { scope: "col", class: column.isNumber ? "n" : "" });
        const button = element("button", column.title, { type: "button" });
        button.addEventListener("click", () => this.turn(at, head));
        head.append(button);
        heads.append(head);
        this.table.style.setProperty("--l" + (at + 1), JSON.stringify(column.title));
      });
      this.table.createTHead().append(heads);
      this.body = this.table.createTBody();
      this.input = element("input", null, { type: "search" });
      this.input.addEventListener("input", () => this.filter());
      this.count = element("span", null, { class: "dim" });
      const label = element("label", "Filter ");
      label.append(this.input);
      const bar = element("div", null, { class: "toolbar" });
      bar.append(label, this.count);
      const scroll = element("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: " + what });
      scroll.append(this.table);
      const box = element("div", null, { class: "table" });
      box.append(bar, scroll);
      holder.replaceChildren(box);
    }

    show(items, key) {
      const seen = new Set();
      items.slice(0, ROWS_MAX).forEach((item, index) => {
        const id = key ? key(item) : index;
        seen.add(id);
        if (!this.rows.has(id)) {
          const row = this.body.insertRow();
          this.columns.forEach((column) => row.insertCell().classList.toggle("n", Boolean(column.isNumber)));
          this.rows.set(id, { row });
        }
        const kept = this.rows.get(id);
        kept.item = item;
        this.columns.forEach((column, at) => {
          const cell = kept.row.cells[at];
          const text = column.text(item);
          if (column.fill) column.fill(cell, item, text);
          else if (cell.textContent !== text) cell.textContent = text;
        });
      });
      for (const [id, { row }] of this.rows) if (!seen.has(id)) { row.remove(); this.rows.delete(id); }
      this.all = items.length;
      this.sort();
      this.filter();
    }

    turn(at, head) {
      const before = head.getAttribute("aria-sort");
      const isRising = before ? before === "descending" : !this.columns[at].isNumber;
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", isRising ? "ascending" : "descending");
      this.by = { at, turn: isRising ? 1 : -1 };
      this.sort();
    }

    // What is not known comes last, either way. Rows move only where the order changed, so that the focus stays.
    sort() {
      if (!this.by) return;
      const column = this.columns[this.by.at];
      const value = ({ item }) => (column.value ? column.value(item) : column.text(item));
      const sorted = Array.from(this.rows.values()).sort((a, b) => {
        const [one, other] = [value(a), value(b)];
        if (!isKnown(one) || !isKnown(other)) return isKnown(other) - isKnown(one);
        return this.by.turn * (typeof one === "number" ? one - other : one.localeCompare(other));
      });
      const focus = document.activeElement;
      sorted.forEach(({ row }, at) => { if (this.body.rows[at] !== row) this.body.insertBefore(row, this.body.rows[at] || null); });
      if (focus && focus !== document.activeElement && this.body.contains(focus)) focus.focus({ preventScroll: true });
    }

    filter() {
      const words = this.input.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
      let shown = 0;
      for (const { row } of this.rows.values()) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        if (!row.hidden) shown++;
      }
      const text = shown + " of " + this.all + " rows";
      if (this.count.textContent !== text) this.count.textContent = text;
    }
  }

  function link(cell, jvm, text) {
    let a = cell.firstChild;
    if (!a) cell.append(a = element("a"));
    if (a.textContent !== text) a.textContent = text;
    if (isKnown(jvm.jvm_id)) a.href = "#jvm=" + jvm.jvm_id;
  }
  function limit(cell, jvm, text) {
    if (!cell.firstChild) {
      const bar = element("span", null, { class: "held", "aria-hidden": "true" });
      bar.append(element("i"));
      cell.append(element("span"), bar);
    }
    cell.firstChild.textContent = text;
    const isShown = isKnown(jvm.group_held_bytes) && jvm.group_limit_bytes > 0;
    cell.lastChild.hidden = !isShown;
    if (isShown) cell.lastChild.firstChild.style.width = Math.min(100, (100 * jvm.group_held_bytes) / jvm.group_limit_bytes) + "%";
  }
  const found = (jvm) => Object.keys(MARKS).filter((level) => count(jvm, level) > 0)
    .map((level) => MARKS[level] + " " + count(jvm, level) + " " + level).join(", ");
  const jvms = new Table(by("jvms"), [
    { title: "JVM", text: (jvm) => jvm.jvm, fill: link },
    { title: "Place", text: place },
    { title: "RESIDENT", isNumber: true, text: (jvm) => bytes(jvm.kernel_resident_bytes), value: (jvm) => jvm.kernel_resident_bytes },
    { title: "Heap used / max", isNumber: true, text: (jvm) => of(jvm.heap_used_bytes, jvm.heap_max_bytes), value: (jvm) => jvm.heap_used_bytes },
    { title: "cgroup held / limit", isNumber: true, text: (jvm) => of(jvm.group_held_bytes, jvm.group_limit_bytes), fill: limit,
      value: (jvm) => (isKnown(jvm.group_held_bytes) && jvm.group_limit_bytes > 0 ? jvm.group_held_bytes / jvm.group_limit_bytes : null) },
    { title: "Findings", text: (jvm) => (jvm.account_age_seconds === null ? "unknown" : found(jvm) || "none"),
      value: (jvm) => count(jvm, "critical") * 1e6 + count(jvm, "warn") * 1e3 + count(jvm, "info"), isNumber: true },
    { title: "Account's age", isNumber: true, text: (jvm) => seconds(jvm.account_age_seconds), value: (jvm) => jvm.account_age_seconds },
  ], "JVMs");
  const ended = new Table(by("ended"), [
    { title: "JVM", text: (jvm) => jvm.jvm },
    { title: "Place", text: place },
    { title: "Ended", text: (jvm) => marusa.date(jvm.ended_ms / 1000) },
    { title: "How", text: (jvm) => jvm.ending, fill: (cell, jvm) => {
      const isKilled = String(jvm.ending).startsWith("killed");
      cell.classList.toggle("killed", isKilled);
      cell.textContent = isKilled ? "▲ OOM-killed" : String(jvm.ending).replaceAll("_", " ");
    } },
    { title: "Last RESIDENT", isNumber: true, text: (jvm) => bytes(jvm.last && jvm.last.kernel_resident_bytes),
      value: (jvm) => jvm.last && jvm.last.kernel_resident_bytes },
  ], "JVMs that ended");

  // Only where it says something else than before: else each look would take the focus and the reader's place.
  function replace(holder, key, nodes) {
    const text = JSON.stringify(key);
    if (holder.dataset.key === text) return;
    holder.dataset.key = text;
    holder.replaceChildren(...nodes());
  }
  function findings(holder, rows) {
    replace(holder, rows, () => {
      if (rows.length === 0) return [element("p", "Nothing was found.")];
      const list = element("ul", null, { class: "findings" });
      for (const { subject, explain, finding } of rows) {
        const item = element("li", null, { class: finding.level });
        item.append(element("span", (MARKS[finding.level] || "") + " " + finding.level, { class: "level" }), " " + finding.title + " ",
          element("span", subject, { class: "dim" }), " ", element("code", "marusa doctor --explain " + explain));
        list.append(item);
      }
      return [list];
    });
  }

  // One JVM.
  const one = { id: null, tables: null };
  function open(id) {
    one.id = id;
    by("node").hidden = id !== null;
    by("one").hidden = id === null;
    if (id === null) return;
    const title = element("h2", "JVM", { id: "one-title" });
    const back = element("a", "All JVMs of this node", { href: "#" });
    const nav = element("p");
    nav.append(back);
    const part = (id, text) => [element("h3", text), element("div", null, { id })];
    by("one").replaceChildren(nav, title, element("p", "", { id: "facts-of", class: "dim" }), ...part("now", "RESIDENT by area"),
      ...part("time", "RESIDENT over time"), ...part("own", "Findings"), ...part("parts", "Largest parts"), ...part("holders", "Holders"),
      ...part("threads", "Threads"), ...part("libraries", "Libraries"));
    const resident = { title: "RESIDENT", isNumber: true, text: (row) => bytes(row.bytes), value: (row) => row.bytes };
    const table = (id, title, what, figure = resident) =>
      new Table(by(id), [{ title, text: (row) => row.name }, { title: "Of", text: (row) => row.of }, figure], what);
    one.tables = { parts: table("parts", "Part", "Largest parts"), holders: table("holders", "Holder", "Holders", { ...resident, title: "IN USE" }),
      threads: table("threads", "Thread", "Threads"), libraries: table("libraries", "Library", "Libraries") };
    // Holders are there only where the account was read with them.
    const part_of_holders = element("section", null, { id: "holders-part", "aria-label": "Holders" });
    part_of_holders.hidden = true;
    by("holders").before(part_of_holders);
    part_of_holders.append(part_of_holders.previousElementSibling, by("holders"));
    back.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  function now(jvm) {
    replace(by("now"), jvm.areas, () => {
      const sum = jvm.areas.reduce((sum, area) => sum + area.resident_bytes, 0);
      if (sum === 0) return [element("p", "unknown: " + (jvm.unread || "no account was read yet"))];
      const bar = element("div", null, { class: "areas-now", "aria-hidden": "true" });
      const legend = element("ul", null, { class: "legend" });
      for (const area of jvm.areas.filter((area) => area.resident_bytes > 0)) {
        const part = element("i", null, { class: "s-" + area.area, title: titles.get(area.area) });
        part.style.width = (100 * area.resident_bytes) / sum + "%";
        bar.append(part);
        const item = element("li");
        item.append(element("span", null, { class: "swatch s-" + area.area, "aria-hidden": "true" }),
          (titles.get(area.area) || area.area) + " " + human(area.resident_bytes));
        legend.append(item);
      }
      return [bar, legend];
    });
  }

  // Areas on each other; a moment without an account carries the last one's on.
  function time(history) {
    let last = null;
    const moments = history.moments.map((moment) => ({ at: moment.at_ms, kernel: moment.kernel_resident_bytes, areas: (last = moment.areas || last) }));
    const read = moments.filter((moment) => moment.areas);
    const [first, end] = [moments[0], moments[moments.length - 1]];
    if (read.length < 2 || end.at <= first.at) return by("time").replaceChildren(element("p", "unknown: fewer than two accounts' moments so far"));
    const top = Math.max(...moments.map((moment) => Math.max(moment.kernel || 0, moment.areas ? moment.areas.reduce((a, b) => a + b, 0) : 0))) * 1.04;
    const x = (at) => ((1000 * (at - first.at)) / (end.at - first.at)).toFixed(1);
    const y = (value) => (260 - (260 * value) / top).toFixed(1);
    const svg = document.createElementNS(SVG, "svg");
    const words = "RESIDENT by area from " + marusa.date(first.at / 1000) + " to " + marusa.date(end.at / 1000) + ", now " + bytes(end.kernel);
    for (const [name, value] of [["class", "over"], ["viewBox", "0 0 1000 260"], ["preserveAspectRatio", "none"], ["role", "img"], ["aria-label", words]]) {
      svg.setAttribute(name, value);
    }
    let below = read.map(() => 0);
    history.areas.forEach((area, at) => {
      const above = read.map((moment, index) => below[index] + (moment.areas[at] || 0));
      const low = below;
      below = above;
      const up = read.map((moment, index) => x(moment.at) + "," + y(above[index]));
      const down = read.map((moment, index) => x(moment.at) + "," + y(low[index])).reverse();
      const shape = document.createElementNS(SVG, "polygon");
      shape.setAttribute("points", up.concat(down).join(" "));
      shape.style.fill = "var(--a-" + area + ")";
      svg.append(shape);
    });
    const spans = element("div", null, { class: "spans dim" });
    spans.append(element("span", marusa.date(first.at / 1000)), element("span", "full height " + human(top)), element("span", marusa.date(end.at / 1000)));
    by("time").replaceChildren(svg, spans);
  }

  function account(map) {
    const { parts, holders, threads, libraries } = one.tables;
    const largest = (rows) => rows.sort((a, b) => b.bytes - a.bytes).slice(0, PARTS_MAX);
    parts.show(largest(map.areas.flatMap((area) => area.parts.map((part) =>
      ({ name: part.part, of: titles.get(area.area) || area.area, bytes: part.resident_bytes })))));
    by("holders-part").hidden = !map.holders;
    holders.show(largest((map.holders || []).map((held) => ({ name: held.holder, of: String(held.how).replaceAll("_", " "), bytes: held.bytes }))));
    threads.show(largest((map.threads || []).map((thread) => ({ name: thread.name, of: thread.kind, bytes: thread.stack && thread.stack.resident_bytes }))));
    libraries.show(largest((map.libraries || []).map((library) => ({ name: library.path, of: "library", bytes: library.resident_bytes }))));
  }

  // What is asked, and what is said of it.
  let [at, isLost, before, isAsking, again] = [null, false, null, false, false];
  async function get(path) {
    const reply = await fetch("api/v1/" + path, { cache: "no-store", signal: AbortSignal.timeout(POLL_MS) });
    if (reply.status === 503 || reply.status === 404) return null;
    if (!reply.ok) throw new Error(String(reply.status));
    return reply.json();
  }
  function age() {
    const said = at === null ? "No figures yet." : "Figures of " + seconds((Date.now() - at) / 1000) + " ago.";
    by("age").textContent = isLost ? "The connection is lost. " + said : said;
    by("age").classList.toggle("lost", isLost);
  }
  function say(list) {
    const ids = new Map(list.map((jvm) => [jvm.jvm_id, jvm.jvm]));
    const changes = [];
    if (before) {
      for (const [id, name] of ids) if (!before.has(id)) changes.push(name + " started");
      for (const [id, name] of before) if (!ids.has(id)) changes.push(name + " ended");
    }
    before = ids;
    if (changes.length > 0) by("said").textContent = changes.slice(0, 3).join(", ") + (changes.length > 3 ? ", and " + (changes.length - 3) + " more" : "");
  }
  async function ask() {
    if (isAsking) { again = true; return; }
    isAsking = true;
    try {
      const [node, list] = await Promise.all([get("jvms"), get("findings")]);
      say(node.jvms);
      jvms.show(node.jvms, (jvm) => jvm.jvm_id || jvm.pid);
      ended.show(node.ended);
      const explained = (subject) => (finding) => ({ subject, explain: finding.id, finding });
      findings(by("found"), list.host_findings.map(explained("host")).concat(list.jvms.flatMap((jvm) => jvm.findings.map(explained(jvm.jvm)))));
      const id = one.id;
      const jvm = node.jvms.find((jvm) => jvm.jvm_id === id);
      if (id !== null && !jvm) by("facts-of").textContent = "This JVM is not watched any more.";
      if (jvm) {
        by("one-title").textContent = jvm.jvm;
        by("facts-of").textContent = ["pid " + jvm.pid, place(jvm), "JDK " + (jvm.version || "unknown"), "collector " + (jvm.gc || "unknown"),
          "RESIDENT " + bytes(jvm.kernel_resident_bytes), "account's age " + seconds(jvm.account_age_seconds)].join(" · ");
        now(jvm);
        findings(by("own"), jvm.findings.map(explained("")));
        const [history, map] = await Promise.all([get("history?jvm=" + id), get("map?jvm=" + id)]);
        if (one.id === id && history) time(history);
        if (one.id === id && map) account(map);
      }
      [at, isLost] = [Date.now(), false];
    } catch (error) {
      isLost = true;
    } finally {
      isAsking = false;
      age();
      if (again) { again = false; ask(); }
    }
  }

  function route() {
    const id = /^#jvm=([0-9A-Za-z]{1,64})$/.exec(location.hash);
    open(id ? id[1] : null);
    ask();
  }
  addEventListener("hashchange", () => { if (location.hash !== "#main") route(); });
  route();
  const events = new EventSource("api/v1/events");
  let poll = null;
  events.addEventListener("changed", ask);
  events.addEventListener("open", () => { clearInterval(poll); poll = null; });
  events.addEventListener("error", () => {
    isLost = true;
    age();
    if (poll === null) poll = setInterval(ask, POLL_MS);
  });
  setInterval(age, 1000);
})();
