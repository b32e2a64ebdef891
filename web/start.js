"use strict";
// The last: all is there. Who tests the page reads how long it took.
requestAnimationFrame(() => requestAnimationFrame(() => {
  document.documentElement.dataset.readyMs = String(Math.round(performance.now()));
}));
