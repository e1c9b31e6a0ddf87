/* Chromium leaves a gap after a square root, as wide as the font's widest root sign. This script measures the gap, and
   the style sheets of pages and decks remove it. */
addEventListener("load", async () => {
  "use strict";
  if (!document.querySelector("math")) return; // a page without formulas does not load the font
  const probe = document.createElement("div");
  probe.style.cssText = "position: absolute; visibility: hidden";
  probe.innerHTML = "<math><msqrt><mi>d</mi></msqrt></math>";
  document.querySelector("article, .reveal")?.append(probe);
  const sign = probe.querySelector("msqrt");
  const rightEdge = (element) => element.getBoundingClientRect().right;
  rightEdge(sign); // forces a layout, which starts to load the font
  await document.fonts.ready;
  const gap = (rightEdge(sign) - rightEdge(sign.firstChild)) / parseFloat(getComputedStyle(sign).fontSize);
  document.documentElement.style.setProperty("--root-gap", `${-gap}em`);
  probe.remove();
});
