/* The choice of a framework, and the switch between languages: both keep the reader's place.
   What is wider than its place can be scrolled by keys. The buttons that copy code speak the page's language. */
(() => {
  "use strict";
  const root = document.documentElement;
  const chosen = () =>
    document.querySelector('.sd-tab-set > input:checked + label[data-sync-group="framework"]');

  function showChoice() {
    const label = chosen();
    if (!label) return;
    const framework = label.dataset.syncId;
    root.dataset.framework = framework;
    for (const passage of document.querySelectorAll(".only")) {
      passage.classList.toggle("is-chosen", passage.classList.contains(`for-${framework}`));
    }
  }

  // Tabs above the clicked one change their height too: what was clicked stays where it was.
  // sphinx-design's script switches them in between.
  let clicked, before;
  document.addEventListener("change", (event) => {
    clicked = event.target.closest?.(".sd-tab-set");
    before = clicked?.getBoundingClientRect().top;
  }, true);
  document.addEventListener("change", () => {
    if (!clicked) return;
    showChoice();
    window.scrollBy({ top: clicked.getBoundingClientRect().top - before, behavior: "instant" });
  });

  /** The id of what stands at the top of the window. */
  function place() {
    const above = [...document.querySelectorAll("article section[id], article .sd-tab-set[id]")]
      .filter((element) => element.getBoundingClientRect().top < 120);
    return above.length > 1 ? above.at(-1).id : "";
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".languages a");
    if (!link) return;
    const url = new URL(link.href);
    if (root.dataset.framework) url.searchParams.set("framework", root.dataset.framework);
    url.hash = place();
    link.href = url.href;
  });

  // A link's target has moved once the choice is restored, and once the figures are there.
  const goToTarget = () => document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
  document.addEventListener("DOMContentLoaded", () => {
    showChoice();
    goToTarget();
  });
  window.addEventListener("load", goToTarget);

  // A key's way to what is too wide for the window; it is announced by its section's heading.
  function reachWide() {
    for (const box of document.querySelectorAll(".table-wrapper, div.math, .highlight pre")) {
      if (box.scrollWidth > box.clientWidth) {
        const heading = box.closest("section")?.querySelector("h1, h2, h3, h4");
        box.tabIndex = 0;
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", heading?.firstChild.textContent ?? document.title);
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      }
    }
  }
  window.addEventListener("load", reachWide);
  window.addEventListener("resize", reachWide);

  // sphinx-copybutton has no Traditional Chinese, and makes its buttons once the page is there.
  for (const [name, words] of Object.entries(messages[locale])) {
    const translated = Documentation.gettext(words);
    messages[locale][name] = translated;
    iconCopy = iconCopy.replace(`<title>${words}</title>`, `<title>${translated}</title>`);
    iconCheck = iconCheck.replace(`<title>${words}</title>`, `<title>${translated}</title>`);
  }
})();
