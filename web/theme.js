"use strict";
// Light, dark, or as the system says. What is drawn on canvas is drawn anew.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const NAMES = ["as the system", "light", "dark"];
  let at = 0;

  function show() {
    if (at === 0) delete root.dataset.theme;
    else root.dataset.theme = NAMES[at];
    button.textContent = "Theme: " + NAMES[at];
    for (const draw of marusa.listeners) draw();
  }
  button.addEventListener("click", () => {
    at = (at + 1) % NAMES.length;
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
})();
