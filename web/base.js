"use strict";
// What the other scripts share: the data of the page and its decoding, figures for people, colours. Names are the words of the
// program that was looked at: they are put into the page as text, never as markup.
const marusa = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;

  // Everything that needs scripts is there from here on.
  root.classList.add("scripted");
  for (const element of document.querySelectorAll(".needs-script[hidden]")) element.hidden = false;

  // Differences to the last known number; "~7": seven more as the one before; "-": not known.
  function series(text) {
    const values = [];
    let last = 0;
    if (text === "") return values;
    for (const word of text.split(" ")) {
      if (word[0] === "~") {
        const again = values[values.length - 1];
        for (let left = Number(word.slice(1)); left > 0; left--) values.push(again);
      } else if (word === "-") {
        values.push(null);
      } else {
        last += Number(word);
        values.push(last);
      }
    }
    return values;
  }

  // The eight areas of the paper, with the Java heap and what is unattributed: sums of ours.
  function paper(areas) {
    const groups = new Map();
    for (const area of areas) {
      const of = data.areas[area.index].paper || { key: area.key, title: area.title };
      const group = groups.get(of.key);
      if (!group) groups.set(of.key, { key: of.key, title: of.title, bytes: area.bytes });
      else group.bytes = group.bytes.map((bytes, at) => (bytes === null || area.bytes[at] === null ? null : bytes + area.bytes[at]));
    }
    return Array.from(groups.values());
  }

  const decoded = new Map();
  // One JVM over time: times in seconds, rows of bytes, and the sums of areas that ever had something.
  function history(index) {
    if (!decoded.has(index)) decoded.set(index, decode(data.histories[index]));
    return decoded.get(index);
  }

  function decode(raw) {
    const times = series(raw.ticks).map((tick) => raw.start + tick / 1000);
    const rows = raw.rows.map((row) => ({ area: row.area, part: row.part, bytes: series(row.bytes) }));
    const areas = [];
    data.areas.forEach((area, index) => {
      const own = rows.filter((row) => row.area === index);
      const bytes = times.map((_, at) =>
        own.some((row) => row.bytes[at] === null) ? null : own.reduce((sum, row) => sum + row.bytes[at], 0));
      if (bytes.some((value) => value > 0)) areas.push({ index, key: area.key, title: area.title, bytes });
    });
    const lines = [{ title: "the kernel's figure", shown: true, bytes: series(raw.kernel) },
      ...raw.lines.map((line) => ({ title: line.title, shown: line.shown, bytes: series(line.bytes) }))];
    const details = raw.details.map((detail) => ({ kind: detail.kind, name: detail.name, bytes: series(detail.bytes) }));
    return { name: raw.name, times, rows, areas, lines, details, events: raw.events };
  }

  const UNITS = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
  function human(bytes) {
    if (bytes === null || bytes === undefined) return "-";
    if (bytes === 0) return "0";
    for (const [unit, size] of UNITS) {
      if (bytes >= size) {
        const value = bytes / size;
        return (unit === "KiB" || value >= 999.95 ? value.toFixed(0) : value.toFixed(1)) + " " + unit;
      }
    }
    return bytes.toFixed(0) + " B";
  }
  function signed(bytes) {
    if (bytes === null) return "-";
    return bytes === 0 ? "0" : (bytes > 0 ? "+" : "-") + human(Math.abs(bytes));
  }
  function date(seconds) {
    return new Date(seconds * 1000).toISOString().replace("T", " ").replace(/\.\d+Z$/, "Z");
  }

  // A colour of the theme that is on now. By an element that has it: the variable itself has those of both themes.
  const sample = document.body.appendChild(document.createElement("i"));
  sample.hidden = true;
  function variable(name) {
    sample.style.color = "var(" + name + ")";
    return getComputedStyle(sample).color;
  }
  function colour(key) {
    return variable("--a-" + key);
  }

  // An element with text in it.
  function element(tag, text, attributes) {
    const made = document.createElement(tag);
    if (text !== undefined && text !== null) made.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    return made;
  }

  // The name of an area, in a cell, behind its colour.
  function titled(area) {
    const cell = element("td");
    cell.append(element("span", null, { class: "swatch s-" + area.key, "aria-hidden": "true" }), area.title);
    return cell;
  }

  return { UNITS, data, history, paper, human, signed, date, variable, colour, element, titled, listeners: [], picks: [] };
})();
