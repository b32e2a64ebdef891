"use strict";
// Tables are sorted by a click on a column's name, and filtered by words. Cells of figures carry the plain number (data-n).
(() => {
  const value = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.n !== undefined) return Number(cell.dataset.n);
    return cell.classList.contains("n") ? null : cell.textContent.toLowerCase();
  };

  // What is not known comes last, either way.
  function order(one, other, turn) {
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one === "number") return (one - other) * turn;
    return one.localeCompare(other) * turn;
  }

  function sort(table, header, column) {
    const isNumber = header.classList.contains("n");
    const before = header.getAttribute("aria-sort");
    const isRising = before ? before === "descending" : !isNumber;
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [value(row, column), row]);
    rows.sort((one, other) => order(one[0], other[0], isRising ? 1 : -1));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", isRising ? "ascending" : "descending");
    const sorted = document.createDocumentFragment();
    for (const [, row] of rows) sorted.append(row);
    body.append(sorted);
  }

  function filter(table, words, count) {
    const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
      if (!row.hidden) shown++;
    }
    const all = table.tBodies[0].rows.length;
    count.textContent = wanted.length === 0 ? all + " rows" : shown + " of " + all + " rows";
  }

  for (const table of document.querySelectorAll("table.data")) {
    Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
      const button = marusa.element("button", header.textContent, { type: "button" });
      button.addEventListener("click", () => sort(table, header, column));
      header.replaceChildren(button);
    });
    const bar = marusa.element("div", null, { class: "toolbar filter" });
    const label = marusa.element("label", "Filter ");
    const input = marusa.element("input", null, { type: "search" });
    const count = marusa.element("span", null, { class: "dim", role: "status" });
    label.append(input);
    bar.append(label, count);
    table.closest(".scroll").before(bar);
    const run = () => filter(table, input.value, count);
    input.addEventListener("input", run);
    table.addEventListener("marusa-rows", run);
    run();
  }
})();
