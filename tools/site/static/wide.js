/* Handle content that is too wide, on pages and decks: formulas shrink to fit, within limits; everything else can be
   scrolled, with the keyboard as well. */
(() => {
  "use strict";
  const WIDE = ".table-wrapper, div.math, .highlight pre, .page .reveal :is(pre, table:not(.live *))";
  const MIN_SCALE = 0.75; // of formulas

  // Shrink formulas that are a little too wide.
  function fitFormulas() {
    const boxes = [...document.querySelectorAll("div.math")];
    const formulas = boxes.map((box) => box.querySelector("math"));
    for (const formula of formulas) formula.style.fontSize = "";
    // Measure all before changing any, so that the browser computes the layout only once.
    const scales = boxes.map((box) => box.clientWidth / box.scrollWidth);
    formulas.forEach((formula, k) => {
      if (scales[k] < 1 && scales[k] > MIN_SCALE) formula.style.fontSize = `${scales[k]}em`;
    });
  }
  window.addEventListener("resize", fitFormulas);

  // Make a box focusable if its content is too wide, and name it after its section's heading. --over tells
  // wide.css how much is hidden; the shade at the box's edge is never wider than that.
  function updateFocus(box) {
    const hiddenWidth = box.scrollWidth - box.clientWidth;
    if (hiddenWidth > 0) {
      const heading = box.closest("section")?.querySelector("h1, h2, h3, h4");
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", heading?.firstChild.textContent ?? document.title);
      box.style.setProperty("--over", `${hiddenWidth}px`);
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      box.style.removeProperty("--over");
    }
  }
  // The observer also reports boxes that become visible: in another framework's tab, in a solution.
  const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => updateFocus(target)));
  window.addEventListener("load", async () => {
    fitFormulas();
    const boxes = document.querySelectorAll(WIDE);
    for (const box of boxes) observer.observe(box);
    await document.fonts.ready; // a new font changes the content's width, but not the box's
    boxes.forEach(updateFocus);
  });
})();
