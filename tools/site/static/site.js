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
  document.addEventListener("change", (event) => {
    const set = event.target.closest?.(".sd-tab-set");
    if (!set) return;
    const before = set.getBoundingClientRect().top;
    queueMicrotask(() => {
      showChoice();
      window.scrollBy({ top: set.getBoundingClientRect().top - before, behavior: "instant" });
    });
  }, true);

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

  // After sphinx-design has restored the choice.
  document.addEventListener("DOMContentLoaded", showChoice);
})();
