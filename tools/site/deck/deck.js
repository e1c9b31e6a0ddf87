/* Slides, one at a time; on paper, and where a screen has no room for one, one below the other, as a page to
   read. And a live figure's keys are its own. */
(() => {
  "use strict";
  const slides = [...document.querySelectorAll(".slides > section")];
  const asked = new URLSearchParams(location.search);
  // The speaker's window shows slides as small as stamps.
  const isSmall = () => !asked.has("receiver") && (innerWidth <= 600 || innerHeight <= 480);
  const isPage = isSmall();
  addEventListener("resize", () => isSmall() !== isPage && location.reload());

  function layOut(asPage) {
    document.documentElement.classList.toggle("page", asPage);
    document.querySelector('link[href$="/reveal.css"]').sheet.disabled = asPage;
  }
  if (isPage) {
    layOut(true);
    addEventListener("load", () => slides[Number(location.hash.slice(2))]?.scrollIntoView());
  } else {
    // No key leads into a slide that is not seen: reveal.js only makes it invisible.
    const reach = () => {
      for (const slide of slides) slide.firstElementChild.inert = !slide.classList.contains("present");
    };
    Reveal.on("ready", reach);
    Reveal.on("slidechanged", reach);
    Reveal.initialize({
      hash: true,
      slideNumber: "c/t",
      width: 960,
      height: 700,
      scrollActivationWidth: null,
      plugins: [RevealNotes],
    });
  }
  // With ?print-pdf, reveal.js puts each slide on a sheet of its own.
  if (!asked.has("print-pdf")) {
    addEventListener("beforeprint", () => layOut(true));
    addEventListener("afterprint", () => layOut(isPage));
  }

  // The keys of a speaker's remote control turn the page from anywhere; Esc gives the others back to the deck.
  for (const figure of document.querySelectorAll(".live")) {
    figure.addEventListener("keydown", (event) => {
      const turns = ["PageUp", "PageDown"].includes(event.key);
      if (turns || event.key === "Escape") document.activeElement.blur();
      if (!turns) event.stopPropagation();
    });
  }
})();
