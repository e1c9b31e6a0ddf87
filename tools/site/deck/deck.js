/* Show slides one at a time; in print and on small screens, stack them as on a page. A live figure that has the focus
   keeps its keyboard input, so that the slide does not change. */
(() => {
  "use strict";
  const slides = [...document.querySelectorAll(".slides > section")];
  const parameters = new URLSearchParams(location.search);
  // The speaker's window shows slides in small frames, which have ?receiver in their address.
  const isSmall = () => !parameters.has("receiver") && (innerWidth <= 600 || innerHeight <= 480);
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
    // reveal.js makes other slides invisible, but the Tab key would still reach them.
    const updateInert = () => {
      for (const slide of slides) slide.firstElementChild.inert = !slide.classList.contains("present");
    };
    Reveal.on("ready", updateInert);
    Reveal.on("slidechanged", updateInert);
    Reveal.initialize({
      hash: true,
      slideNumber: "c/t",
      width: 960,
      height: 700,
      scrollActivationWidth: null,
      plugins: [RevealNotes],
    });
  }
  // With ?print-pdf, reveal.js itself puts each slide on its own sheet.
  if (!parameters.has("print-pdf")) {
    addEventListener("beforeprint", () => layOut(true));
    addEventListener("afterprint", () => layOut(isPage));
  }

  // The keys of a remote control change the slide even from within a figure. After Escape, all keys control the deck.
  for (const figure of document.querySelectorAll(".live")) {
    figure.addEventListener("keydown", (event) => {
      const changesSlide = ["PageUp", "PageDown"].includes(event.key);
      if (changesSlide || event.key === "Escape") document.activeElement.blur();
      if (!changesSlide) event.stopPropagation();
    });
  }
})();
