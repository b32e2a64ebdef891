const root = document.documentElement;
for (const folded of document.querySelectorAll("details")) folded.open = true;
await tick();
await tick();
const name = (element) => element.tagName + "." + element.className + "#" + element.id + " " + (element.textContent || "").slice(0, 40);
const isShown = (element) => element.getClientRects().length > 0;
const found = { width: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches };
found.over = root.scrollWidth > innerWidth
  ? Array.from(document.body.querySelectorAll("*")).filter((one) => one.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map(name) : [];
found.cut = Array.from(document.querySelectorAll("table.data th, table.data td")).filter((cell) => {
  const box = cell.getBoundingClientRect();
  return isShown(cell) && (box.right > innerWidth || cell.scrollWidth > cell.clientWidth + 1);
}).slice(0, 5).map(name);
const { violations, passes } = await axe.run(document, { resultTypes: ["violations"] });
found.passes = passes.length;
found.violations = violations.map((rule) => [rule.id, rule.help, rule.nodes.length, rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + " " + node.failureSummary)]);
return found;
