// Problems that a reader of the page sees, as lists; empty lists are good. Colours and sizes are as rendered.
(() => {
  const words = (node) => (node.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
  const named = (node) => `${node.tagName.toLowerCase()} "${words(node)}"`;
  const box = (node) => node.getBoundingClientRect();
  const seen = (node) => box(node).width > 0 && box(node).height > 0 && getComputedStyle(node).visibility === "visible";
  const all = (selector) => [...document.querySelectorAll(selector)];

  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const opaque = (colour) => colour !== "none" && (numbers(colour)[3] ?? 1) > 0;
  const back = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (opaque(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  // WCAG 2.2, "relative luminance" and "contrast ratio".
  const light = (colour) => {
    const [r, g, b] = numbers(colour).slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  // The background of text in an SVG is the last shape drawn there before it.
  const drawnBehind = (text) => {
    const at = box(text), x = at.x + at.width / 2, y = at.y + at.height / 2;
    const before = [...text.ownerSVGElement.querySelectorAll("rect, polygon, circle")].filter((shape) => {
      const b = box(shape), fill = getComputedStyle(shape).fill;
      const precedes = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      return precedes && opaque(fill) && x >= b.left && x <= b.right && y >= b.top && y <= b.bottom;
    });
    return before.length ? getComputedStyle(before.at(-1)).fill : back(text.ownerSVGElement);
  };
  const holdsWords = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const faint = (node, ink, paper) => {
    const ratio = contrast(ink, paper);
    return ratio < 4.5 ? [`${named(node)}: ${ratio.toFixed(1)}`] : [];
  };

  return {
    sections: all("section").map((section) => section.id),
    hidden: all("section").filter((one) => !seen(one)).map((one) => one.id),
    untitled: all("section").filter((one) => !one.querySelector("h2") || !seen(one.querySelector("h2"))).map((one) => one.id),
    across: Math.max(document.documentElement.scrollWidth, window.innerWidth),
    beyond: all("body *").filter((one) => !one.closest(".scroll, svg") && box(one).right > document.documentElement.clientWidth + 0.5).map(named),
    paper: back(document.body),
    faint: [
      ...all("body *").filter((one) => !one.closest("svg") && holdsWords(one) && seen(one))
        .flatMap((one) => faint(one, getComputedStyle(one).color, back(one))),
      ...all("svg text").filter(seen).flatMap((one) => faint(one, getComputedStyle(one).fill, drawnBehind(one))),
    ],
    cut: all("svg text").filter((one) => {
      const word = box(one), edge = box(one.ownerSVGElement);
      return seen(one) && (word.left < edge.left - 1 || word.right > edge.right + 1 || word.top < edge.top - 1 || word.bottom > edge.bottom + 1);
    }).map(named),
    nameless: all("svg").filter((one) => one.getAttribute("aria-hidden") !== "true"
      && !one.getAttribute("aria-label") && !one.querySelector(":scope > title")).map((one) => one.outerHTML.slice(0, 60)),
    pictures: all("svg").length,
    unscoped: all("th").filter((one) => !["col", "row", "colgroup", "rowgroup"].includes(one.getAttribute("scope"))).map(named),
    links: all("a[href]").filter(seen).map((one) => one.getAttribute("href")),
    deadLinks: all("a[href^='#']").map((one) => one.getAttribute("href")).filter((one) => !document.getElementById(one.slice(1))),
  };
})()
