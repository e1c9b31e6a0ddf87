/* The choice of a framework, and the switch between languages: both keep the reader's place. */
(() => {
  "use strict";
  const root = document.documentElement;
  const chosen = () =>
    document.querySelector('.sd-tab-set > input:checked + label[data-sync-group="framework"]');

  function showChoice() {
    const label = chosen();
    if (label) root.dataset.framework = label.dataset.syncId;
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
})();
