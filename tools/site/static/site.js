/* The bar: the framework selector, the menu that runs a notebook, and the language switch, which all keep the reader's
   position. Also folded solutions, and copy buttons in the page's language. */
(() => {
  "use strict";
  const root = document.documentElement;
  const bar = document.querySelector(".bar");
  const chooser = bar?.querySelector("select");
  const run = bar?.querySelector(".run");
  const sets = document.querySelectorAll(".sd-tab-set");
  const chosenLabel = () =>
    document.querySelector('.sd-tab-set > input:checked + label[data-sync-group="framework"]');

  // sphinx-design's script needs this attribute, which tools/site/lean.py removed from hundreds of labels.
  for (const label of document.querySelectorAll(".sd-tab-label")) label.dataset.syncGroup = "framework";

  function showChoice() {
    const label = chosenLabel();
    if (!label) return;
    const framework = label.dataset.syncId;
    root.dataset.framework = framework;
    for (const passage of document.querySelectorAll(".only")) {
      passage.classList.toggle("is-chosen", passage.classList.contains(`for-${framework}`));
    }
    if (!chooser) return;
    chooser.value = framework;
    const links = label.nextElementSibling.querySelector(".launch").cloneNode(true);
    run.replaceChildren(run.firstElementChild, links);
  }

  const top = (element) => element.getBoundingClientRect().top;

  /** Find the element that the reader is reading: the first that begins below the bar, or the one that covers it. */
  function findElementInSight() {
    const edge = bar.offsetHeight;
    const visible = [...document.querySelectorAll("article > section :is(h1, h2, h3, p, li, .sd-tab-set)")]
      .filter((element) => element.getClientRects().length);
    return visible.find((element) => top(element) >= edge && top(element) < innerHeight)
      ?? visible.find((element) => element.getBoundingClientRect().bottom > edge);
  }

  // Another framework changes the height of the cells above. Scroll back to what was clicked or read.
  const scrollBack = (element, oldTop) =>
    window.scrollBy({ top: top(element) - oldTop, behavior: "instant" });
  let clicked, clickedTop; // sphinx-design's script switches the cells between these two listeners
  document.addEventListener("change", (event) => {
    clicked = event.target.closest(".sd-tab-set");
    clickedTop = clicked && top(clicked);
  }, true);
  document.addEventListener("change", (event) => {
    if (!clicked?.contains(event.target)) return;
    showChoice();
    scrollBack(clicked, clickedTop);
  });
  chooser?.addEventListener("change", () => {
    const element = findElementInSight();
    const oldTop = top(element);
    sets[0].querySelector(`label[data-sync-id="${chooser.value}"]`).click();
    scrollBack(element, oldTop);
  });

  // The bar chooses the framework of all cells, so the Tab key skips their tabs.
  for (const set of chooser ? sets : []) {
    set.setAttribute("role", "radiogroup");
    set.setAttribute("aria-label", chooser.getAttribute("aria-label"));
    for (const radio of set.querySelectorAll(":scope > input")) radio.tabIndex = -1;
  }

  // A click elsewhere or Escape closes the menu.
  document.addEventListener("click", (event) => {
    if (run && !run.contains(event.target)) run.open = false;
  });
  run?.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    run.open = false;
    run.firstElementChild.focus();
  });

  // Remember a framework in the address, also on a page without cells.
  const asked = new URLSearchParams(location.search).get("framework");
  if (asked && !sets.length) set_stored_id("framework", asked);

  /** Return the id of the section or cell at the top of the window. */
  function findPosition() {
    const above = [...document.querySelectorAll("article section[id], article .sd-tab-set[id]")]
      .filter((element) => element.getClientRects().length && top(element) < 120);
    return above.length > 1 ? above.at(-1).id : "";
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".languages a");
    if (!link) return;
    const url = new URL(link.href);
    if (root.dataset.framework) url.searchParams.set("framework", root.dataset.framework);
    url.hash = findPosition();
    link.href = url.href;
  });

  // Each solution is folded until the reader or a link opens it. In print all are shown.
  for (const solution of document.querySelectorAll('section[id$="solutions"] > section')) {
    const heading = solution.querySelector("h3");
    const show = document.createElement("button");
    show.type = "button";
    show.className = "show-solution";
    show.textContent = bar.dataset.solution;
    show.addEventListener("click", () => solution.classList.remove("is-folded"));
    heading.after(show);
    solution.classList.add("is-folded");
  }
  function unfold() {
    document.getElementById(location.hash.slice(1))?.closest(".is-folded")?.classList.remove("is-folded");
  }
  window.addEventListener("hashchange", unfold);

  // The target of a link moves when the choice is restored and when figures are loaded.
  const goToTarget = () => document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
  document.addEventListener("DOMContentLoaded", () => {
    showChoice();
    unfold();
    goToTarget();
  });
  window.addEventListener("load", goToTarget);

  // Browsers do not fetch pages from file://.
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";

  // sphinx-copybutton is not translated into Traditional Chinese. It creates its buttons later, with these messages.
  for (const [name, message] of Object.entries(messages[locale])) {
    const translated = Documentation.gettext(message);
    messages[locale][name] = translated;
    iconCopy = iconCopy.replace(`<title>${message}</title>`, `<title>${translated}</title>`);
    iconCheck = iconCheck.replace(`<title>${message}</title>`, `<title>${translated}</title>`);
  }
})();
