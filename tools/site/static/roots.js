/* Behind a root, Chromium keeps room for the widest root sign that the font has: here it is measured, and the
   style sheets of pages and decks take it back. */
addEventListener("load", async () => {
  "use strict";
  if (!document.querySelector("math")) return; // nor is the font needed
  const probe = document.createElement("div");
  probe.style.cssText = "position: absolute; visibility: hidden";
  probe.innerHTML = "<math><msqrt><mi>d</mi></msqrt></math>";
  document.querySelector("article, .reveal")?.append(probe);
  const sign = probe.querySelector("msqrt");
  const right = (element) => element.getBoundingClientRect().right;
  right(sign); // now the font is asked for
  await document.fonts.ready;
  const gap = (right(sign) - right(sign.firstChild)) / parseFloat(getComputedStyle(sign).fontSize);
  document.documentElement.style.setProperty("--root-gap", `${-gap}em`);
  probe.remove();
});
