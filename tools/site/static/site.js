/* The bar: the choice of a framework, what runs its notebook, and the switch between languages, which keep
   the reader's place. The buttons that copy code speak the page's language. */
(() => {
  "use strict";
  const root = document.documentElement;
  const bar = document.querySelector(".bar");
  const chooser = bar?.querySelector("select");
  const run = bar?.querySelector(".run");
  const sets = document.querySelectorAll(".sd-tab-set");
  const chosen = () =>
    document.querySelector('.sd-tab-set > input:checked + label[data-sync-group="framework"]');

  // What sphinx-design's script goes by; in the page it would stand hundreds of times (tools/site/lean.py).
  for (const label of document.querySelectorAll(".sd-tab-label")) label.dataset.syncGroup = "framework";

  function showChoice() {
    const label = chosen();
    if (!label) return;
    const framework = label.dataset.syncId;
    root.dataset.framework = framework;
    for (const passage of document.querySelectorAll(".only")) {
      passage.classList.toggle("is-chosen", passage.classList.contains(`for-${framework}`));
    }
    if (!chooser) return;
    chooser.value = framework;
    const ways = label.nextElementSibling.querySelector(".launch").cloneNode(true);
    run.replaceChildren(run.firstElementChild, ways);
  }

  const top = (element) => element.getBoundingClientRect().top;

  /** What begins first below the bar; where nothing does, what is there. */
  function inSight() {
    const edge = bar.offsetHeight;
    const all = [...document.querySelectorAll("article > section :is(h1, h2, h3, p, li, .sd-tab-set)")]
      .filter((element) => element.getClientRects().length);
    return all.find((element) => top(element) >= edge && top(element) < innerHeight)
      ?? all.find((element) => element.getBoundingClientRect().bottom > edge);
  }

  // Cells above the reader's place change their height, too: what was clicked or read stays where it was.
  const moveBack = (element, before) =>
    window.scrollBy({ top: top(element) - before, behavior: "instant" });
  let clicked, before; // sphinx-design's script switches the cells in between
  document.addEventListener("change", (event) => {
    clicked = event.target.closest(".sd-tab-set");
    before = clicked && top(clicked);
  }, true);
  document.addEventListener("change", (event) => {
    if (!clicked?.contains(event.target)) return;
    showChoice();
    moveBack(clicked, before);
  });
  chooser?.addEventListener("change", () => {
    const read = inSight(), there = top(read);
    sets[0].querySelector(`label[data-sync-id="${chooser.value}"]`).click();
    moveBack(read, there);
  });

  // The bar chooses for all: a key need not stop at each cell.
  for (const set of chooser ? sets : []) {
    set.setAttribute("role", "radiogroup");
    set.setAttribute("aria-label", chooser.getAttribute("aria-label"));
    for (const radio of set.querySelectorAll(":scope > input")) radio.tabIndex = -1;
  }

  // The menu closes by itself.
  document.addEventListener("click", (event) => {
    if (run && !run.contains(event.target)) run.open = false;
  });
  run?.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    run.open = false;
    run.firstElementChild.focus();
  });

  // A choice in an address is remembered where there is nothing to choose, too.
  const asked = new URLSearchParams(location.search).get("framework");
  if (asked && !sets.length) set_stored_id("framework", asked);

  /** The id of what stands at the top of the window. */
  function place() {
    const above = [...document.querySelectorAll("article section[id], article .sd-tab-set[id]")]
      .filter((element) => element.getClientRects().length && top(element) < 120);
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

  // Each solution is folded until the reader, or a link, asks for it. On paper all are there.
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

  // A link's target has moved once the choice is restored, and once the figures are there.
  const goToTarget = () => document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
  document.addEventListener("DOMContentLoaded", () => {
    showChoice();
    unfold();
    goToTarget();
  });
  window.addEventListener("load", goToTarget);

  // From file:// a browser fetches nothing.
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";

  // sphinx-copybutton has no Traditional Chinese, and makes its buttons once the page is there.
  for (const [name, words] of Object.entries(messages[locale])) {
    const translated = Documentation.gettext(words);
    messages[locale][name] = translated;
    iconCopy = iconCopy.replace(`<title>${words}</title>`, `<title>${translated}</title>`);
    iconCheck = iconCheck.replace(`<title>${words}</title>`, `<title>${translated}</title>`);
  }
})();
