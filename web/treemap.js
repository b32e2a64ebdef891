"use strict";
// What a box of the treemap or a part of a bar stands for, under the pointer and at what has the focus. The browser's own tips come
// late, and never for keys or fingers. Escape leads from an area's parts back to all areas.
(() => {
  const AWAY = 12;
  const tip = marusa.element("div", null, { class: "tip", "aria-hidden": "true" });
  tip.hidden = true;
  document.body.append(tip);
  for (const box of document.querySelectorAll(".treemap [title], .bar [title]")) {
    box.dataset.tip = box.title;
    if (box.matches(".box")) box.setAttribute("aria-label", box.title);
    box.removeAttribute("title");
  }

  const hide = () => { tip.hidden = true; };
  function show(target, x, y) {
    const box = target instanceof Element ? target.closest("[data-tip]") : null;
    if (!box) return hide();
    tip.textContent = box.dataset.tip;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const right = document.documentElement.clientWidth - width - 4;
    tip.style.left = Math.max(4, Math.min(x + AWAY, right)) + "px";
    tip.style.top = (y + AWAY + height < innerHeight ? y + AWAY : y - AWAY - height) + "px";
  }
  document.addEventListener("pointermove", (event) => show(event.target, event.clientX, event.clientY), { passive: true });
  document.addEventListener("pointerdown", (event) => show(event.target, event.clientX, event.clientY), { passive: true });
  document.addEventListener("scroll", hide, { passive: true, capture: true });
  document.addEventListener("focusin", (event) => {
    if (!event.target.matches(":focus-visible")) return;
    const { left, bottom } = event.target.getBoundingClientRect();
    show(event.target, left, bottom - 2 * AWAY);
  });
  document.addEventListener("focusout", hide);

  let inside = null;
  addEventListener("hashchange", () => {
    const from = inside;
    inside = document.querySelector(".one-area:target");
    hide();
    if (inside) inside.querySelector("a").focus();
    else if (from && location.hash === "#account") document.querySelector('.all-areas a[href="#' + from.id + '"]').focus();
  });
  inside = document.querySelector(".one-area:target");
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    hide();
    if (inside) location.hash = "#account";
  });
})();
