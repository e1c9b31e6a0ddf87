/* What is wider than its place, on pages and decks: a formula is made to fit, or else it can be scrolled, by keys
   as well. */
(() => {
  "use strict";
  const WIDE = ".table-wrapper, div.math, .highlight pre, .page .reveal :is(pre, table:not(.live *))";
  const SMALLEST = 0.75; // of a formula's size

  // A formula that is a little too wide is written smaller.
  function fitFormulas() {
    const boxes = [...document.querySelectorAll("div.math")];
    const formulas = boxes.map((box) => box.querySelector("math"));
    for (const formula of formulas) formula.style.fontSize = "";
    // All are measured before any is written: the page is laid out once.
    const fits = boxes.map((box) => box.clientWidth / box.scrollWidth);
    formulas.forEach((formula, k) => {
      if (fits[k] < 1 && fits[k] > SMALLEST) formula.style.fontSize = `${fits[k]}em`;
    });
  }
  window.addEventListener("resize", fitFormulas);

  // A key's way to what is too wide for the window; it is announced by its section's heading. The shade is no wider
  // than what is out of sight (wide.css).
  function reach(box) {
    const over = box.scrollWidth - box.clientWidth;
    if (over > 0) {
      const heading = box.closest("section")?.querySelector("h1, h2, h3, h4");
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", heading?.firstChild.textContent ?? document.title);
      box.style.setProperty("--over", `${over}px`);
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      box.style.removeProperty("--over");
    }
  }
  // It tells when a box comes into sight, too: in the tab of another framework, in a solution.
  const sizes = new ResizeObserver((changed) => changed.forEach(({ target }) => reach(target)));
  window.addEventListener("load", async () => {
    fitFormulas();
    const boxes = document.querySelectorAll(WIDE);
    for (const box of boxes) sizes.observe(box);
    await document.fonts.ready; // with which what is in a box grows, and not the box
    boxes.forEach(reach);
  });
})();
