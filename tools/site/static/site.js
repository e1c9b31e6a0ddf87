/* The bar: the framework selector, the menu that runs a notebook, and the language switch. Choosing a framework or a
   language keeps the reader's position. Also: folded solutions, and copy buttons in the page's language. */
(() => {
  "use strict";
  const root = document.documentElement;
  const bar = document.querySelector(".bar");
  const selector = bar?.querySelector("select");
  const runMenu = bar?.querySelector(".run");
  const tabSets = document.querySelectorAll(".sd-tab-set");
  const findChosenLabel = () =>
    document.querySelector('.sd-tab-set > input:checked + label[data-sync-group="framework"]');

  // sphinx-design's script needs this attribute, which tools/site/lean.py removed from hundreds of labels.
  for (const label of document.querySelectorAll(".sd-tab-label")) label.dataset.syncGroup = "framework";

  function showChoice() {
    const label = findChosenLabel();
    if (!label) return;
    const framework = label.dataset.syncId;
    root.dataset.framework = framework;
    for (const passage of document.querySelectorAll(".only")) {
      passage.classList.toggle("is-chosen", passage.classList.contains(`for-${framework}`));
    }
    if (!selector) return;
    selector.value = framework;
    const links = label.nextElementSibling.querySelector(".launch").cloneNode(true);
    runMenu.replaceChildren(runMenu.firstElementChild, links);
  }

  const top = (element) => element.getBoundingClientRect().top;

  /** Find what is being read: the first element that begins below the bar, or else the one that crosses its edge. */
  function findElementInSight() {
    const edge = bar.offsetHeight;
    const visible = [...document.querySelectorAll("article > section :is(h1, h2, h3, p, li, .sd-tab-set)")]
      .filter((element) => element.getClientRects().length);
    return visible.find((element) => top(element) >= edge && top(element) < innerHeight)
      ?? visible.find((element) => element.getBoundingClientRect().bottom > edge);
  }

  // A change of the framework changes the height of the cells above. Scroll back to the element that was read.
  const scrollBack = (element, oldTop) =>
    window.scrollBy({ top: top(element) - oldTop, behavior: "instant" });
  document.addEventListener("change", (event) => {
    if (event.target.closest(".sd-tab-set")) showChoice();
  });
  selector?.addEventListener("change", () => {
    const element = findElementInSight();
    const oldTop = top(element);
    tabSets[0].querySelector(`label[data-sync-id="${selector.value}"]`).click();
    scrollBack(element, oldTop);
  });

  // The tabs below the title; those of cells are hidden.
  if (selector) {
    tabSets[0].setAttribute("role", "radiogroup");
    tabSets[0].setAttribute("aria-label", selector.getAttribute("aria-label"));
  }

  // A click elsewhere or Escape closes the menu.
  document.addEventListener("click", (event) => {
    if (runMenu && !runMenu.contains(event.target)) runMenu.open = false;
  });
  runMenu?.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    runMenu.open = false;
    runMenu.firstElementChild.focus();
  });

  // Remember the framework that the address requests. On pages with cells, sphinx-design's script does this.
  const requested = new URLSearchParams(location.search).get("framework");
  if (requested && !tabSets.length) set_stored_id("framework", requested);

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

  // Fold each solution until the reader or a link opens it. Print shows all solutions.
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

  // Scroll again to the target of a link, which moves when the framework is restored and when figures are loaded.
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
