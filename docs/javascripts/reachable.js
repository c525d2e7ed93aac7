"use strict";
/* What scrolls sideways is reached with the keyboard, and every landmark has a name of its own. The theme makes some of it after loading. */
(() => {
  const mend = () => {
    for (const box of document.querySelectorAll("pre > code, .md-typeset__scrollwrap"))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    for (const box of document.querySelectorAll("nav.md-code__nav")) box.setAttribute("role", "none");
    for (const nav of document.querySelectorAll("nav.md-nav nav.md-nav[aria-labelledby]")) {
      const above = nav.parentElement.closest("nav.md-nav nav.md-nav")?.getAttribute("aria-label");
      const own = nav.querySelector(":scope > .md-nav__title")?.textContent.trim();
      nav.setAttribute("aria-label", above ? `${above}: ${own}` : own);
      nav.removeAttribute("aria-labelledby");
    }
  };
  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => ((waiting = false), mend()));
  };
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", soon);
  soon();
})();
