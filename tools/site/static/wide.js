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
  window.addEventListener("load", fitFormulas);
  window.addEventListener("resize", fitFormulas);

  // A key's way to what is too wide for the window; it is announced by its section's heading.
  function reachWide() {
    for (const box of document.querySelectorAll(WIDE)) {
      if (box.scrollWidth > box.clientWidth) {
        const heading = box.closest("section")?.querySelector("h1, h2, h3, h4");
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", heading?.firstChild.textContent ?? document.title);
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      }
    }
  }
  window.addEventListener("load", reachWide);
  window.addEventListener("resize", reachWide);
})();
