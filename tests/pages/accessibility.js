// What is looked for in a page: controls without a name, faint letters, landmarks, headings, controls inside controls.
() => {
  const found = [];
  const every = [];
  const walk = node => {
    for (const one of node.children || []) {
      every.push(one);
      if (one.shadowRoot) walk(one.shadowRoot);
      walk(one);
    }
  };
  walk(document.body);
  const parent = one => one.assignedSlot || one.parentElement || (one.getRootNode() || {}).host || null;
  const shown = one => one.getClientRects().length > 0 && getComputedStyle(one).visibility !== "hidden";
  const where = one => one.tagName.toLowerCase() + (one.className && typeof one.className === "string"
    ? "." + one.className.trim().split(/\s+/).join(".") : "");

  const text = one => (one.textContent || "").trim();
  const nameOf = one => {
    const root = one.getRootNode();
    const by = (one.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean);
    const labelled = by.map(id => root.getElementById && root.getElementById(id)).filter(Boolean).map(text).join(" ");
    const labels = one.labels ? [...one.labels].map(text).join(" ") : "";
    return one.getAttribute("aria-label") || labelled || labels || (/^(INPUT|SELECT|TEXTAREA)$/.test(one.tagName)
      ? one.title : text(one) || one.title);
  };
  const CONTROLS = "button, a[href], input:not([type=hidden]), select, textarea, [tabindex='0'], [role=button], [role=slider]";
  for (const one of every) {
    if (!one.matches(CONTROLS) || !shown(one)) continue;
    if (!nameOf(one)) found.push("no name: " + where(one));
    if (one.matches("button, a[href], [role=button]") && one.querySelector("button, a[href], [role=button], input"))
      found.push("a control inside a control: " + where(one));
  }

  const numbers = colour => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = one => {
    let over = [];
    for (let at = one; at; at = parent(at)) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (a > 0) over.push([r, g, b, a]);
      if (a === 1) break;
    }
    return over.reverse().reduce((under, [r, g, b, a]) =>
      [r, g, b].map((v, i) => v * a + under[i] * (1 - a)), [255, 255, 255]);
  };
  const faded = one => { for (let at = one; at; at = parent(at)) if (getComputedStyle(at).opacity < 1) return true; return false; };
  const said = new Set();
  for (const one of every) {
    if (one.closest("svg, canvas, style, script, option") || one.disabled || faded(one) || !shown(one)) continue;
    if (![...one.childNodes].some(child => child.nodeType === 3 && child.textContent.trim())) continue;
    const style = getComputedStyle(one), behind = light(ground(one)), front = light(numbers(style.color));
    const ratio = (Math.max(behind, front) + 0.05) / (Math.min(behind, front) + 0.05);
    if (ratio < 4.5) said.add(`contrast ${ratio.toFixed(1)}: ${where(one)} "${text(one).slice(0, 30)}"`);
  }
  found.push(...said);

  const count = (what, selector, least, most) => {
    const number = every.filter(one => one.matches(selector) && (shown(one) || getComputedStyle(one).display === "contents")).length;
    if (number < least || number > most) found.push(`${number} of ${what}; expected ${least} to ${most}`);
  };
  count("main", "main, [role=main]", 1, 1);
  count("navigation", "nav, [role=navigation]", 1, 1);
  count("h1", "h1", 1, 1);
  if (!document.documentElement.lang) found.push("the page does not say its language");
  if (!document.title) found.push("the page has no title");
  return found;
}
