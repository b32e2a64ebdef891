"use strict";
// What changed between two moments that are chosen, by sliders or by clicks into the chart: by area and part, the most first.
(() => {
  const NAMED = 3;

  function start(holder) {
    const number = Number(holder.dataset.history);
    const sliders = { from: holder.querySelector("[data-moment=from]"), to: holder.querySelector("[data-moment=to]") };
    const outputs = { from: holder.querySelector("[data-at=from]"), to: holder.querySelector("[data-at=to]") };
    const table = holder.querySelector("table.data");
    const by = holder.querySelector("[data-by]");
    const sum = holder.querySelector("[data-sum]");
    let waiting = false;

    const last = marusa.history(number).times.length - 1;
    sliders.from.max = sliders.to.max = String(last);
    sliders.from.value = "0";
    sliders.to.value = String(last);
    const pick = { from: 0, to: last, choose };
    marusa.picks[number] = pick;
    marusa.redraw(number);

    function choose(which, moment) {
      sliders[which].value = String(moment);
      changed();
    }

    function changed() {
      pick.from = Number(sliders.from.value);
      pick.to = Number(sliders.to.value);
      // Once a frame, however fast a slider moves. By a timer: a hidden page has no frames.
      if (waiting) return;
      waiting = true;
      setTimeout(() => {
        waiting = false;
        show();
        marusa.redraw(number);
      }, 16);
    }

    // Series with what they were at both moments, what changed most first.
    function compared(all) {
      const rows = all.map((row) => {
        const [from, to] = [row.bytes[pick.from], row.bytes[pick.to]];
        return { row, from, to, change: from === null || to === null ? null : to - from };
      });
      return rows.sort((one, other) => Math.abs(other.change || 0) - Math.abs(one.change || 0));
    }

    function detailed(history) {
      const of = history.details.filter((detail) => detail.kind === by.value);
      return compared(of.map((detail) => ({ kind: detail.kind, part: detail.name, bytes: detail.bytes })));
    }

    function show() {
      const history = marusa.history(number);
      const parts = compared(history.rows.map((row) => ({ area: marusa.data.areas[row.area], part: row.part, bytes: row.bytes })));
      const rows = by && by.value !== "part" ? detailed(history) : parts;
      for (const which of ["from", "to"]) {
        const text = marusa.date(history.times[pick[which]]);
        outputs[which].textContent = text;
        sliders[which].setAttribute("aria-valuetext", text);
      }
      sum.textContent = sentence(history, parts);
      const body = document.createDocumentFragment();
      for (const { row, from, to, change } of rows) {
        const line = document.createElement("tr");
        line.append(row.area ? marusa.titled(row.area) : marusa.element("td", row.kind), marusa.element("td", row.part));
        for (const [bytes, text] of [[from, marusa.human(from)], [to, marusa.human(to)], [change, marusa.signed(change)]]) {
          line.append(marusa.element("td", text, bytes === null ? { class: "n" } : { class: "n", "data-n": bytes }));
        }
        body.append(line);
      }
      table.tBodies[0].replaceChildren(body);
      for (const header of table.tHead.rows[0].cells) header.removeAttribute("aria-sort");
      table.dispatchEvent(new Event("marusa-rows"));
    }

    // "+412 MiB: +380 MiB large bins, +32 MiB class space".
    function sentence(history, rows) {
      const span = marusa.date(history.times[pick.from]) + " to " + marusa.date(history.times[pick.to]);
      if (rows.some(({ change }) => change === null)) return span + ": one of the two moments could not be read";
      const all = rows.reduce((bytes, { change }) => bytes + change, 0);
      const named = rows.filter(({ change }) => change !== 0).slice(0, NAMED);
      const parts = named.map(({ row, change }) => marusa.signed(change) + " " + row.part);
      return span + ": " + marusa.signed(all) + (parts.length > 0 ? ": " + parts.join(", ") : "");
    }

    sliders.from.addEventListener("input", changed);
    sliders.to.addEventListener("input", changed);
    if (by) by.addEventListener("change", changed);
    show();
    return pick;
  }

  // Where there are many, each is made ready when it comes near the screen, or when its chart is clicked.
  const holders = new Map();
  marusa.pick = (number) => marusa.picks[number] || (holders.has(number) ? start(holders.get(number)) : null);
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      near.unobserve(entry.target);
      marusa.pick(Number(entry.target.dataset.history));
    }
  }, { rootMargin: "400px" });
  for (const holder of document.querySelectorAll(".diff[data-history]")) {
    holders.set(Number(holder.dataset.history), holder);
    if (marusa.data.histories.length === 1) marusa.pick(Number(holder.dataset.history));
    else near.observe(holder);
  }
})();
