export function render({ model, el }) {
  const make = (name, tag) => { const one = document.createElement(tag || "div"); one.className = name; return one; };
  const draw = (tag, values) => {
    const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(values)) one.setAttribute(key, value);
    return one;
  };
  const strip = make("strip"), handle = make("handle"), ends = make("ends");
  const low = make("low", "span"), mid = make("mid", "span"), high = make("high", "span");
  const picture = draw("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" });
  strip.tabIndex = 0;
  strip.setAttribute("role", "slider");
  strip.append(picture, handle);
  ends.append(low, mid, high);
  el.append(strip, ends);

  const paint = () => {
    const found = [];
    for (const mark of model.marks) {
      const left = 1000 * mark.x, width = Math.max(2, 1000 * (mark.to - mark.x));
      const tall = mark.kind === "fault" ? { y: 0, height: 100 } : { y: 78, height: 22 };
      const one = draw("rect", { x: left, width, ...tall, class: mark.kind });
      const title = draw("title", {});
      title.textContent = mark.name; one.append(title); found.push(one);
    }
    if (model.line.length) {
      const points = model.line.map(([x, y]) => (1000 * x).toFixed(1) + "," + (8 + 84 * (1 - y)).toFixed(1)).join(" ");
      found.push(draw("polyline", { points, class: "line", "vector-effect": "non-scaling-stroke" }));
    }
    picture.replaceChildren(...found);
    low.textContent = model.low; high.textContent = model.high; mid.textContent = model.legend;
  };
  let held = false;
  const place = () => {
    if (!held) handle.style.left = 100 * Math.min(1, Math.max(0, model.at)) + "%";
    strip.setAttribute("aria-label", model.label);
    strip.setAttribute("aria-valuemin", 0);
    strip.setAttribute("aria-valuemax", model.most);
    strip.setAttribute("aria-valuenow", model.now);
    strip.setAttribute("aria-valuetext", model.said);
  };
  let last = 0, waiting = null;
  const say = (x, end) => {
    clearTimeout(waiting);
    const send = () => { last = Date.now(); model.send_msg({ x, end }); };
    if (end || Date.now() - last > 80) send(); else waiting = setTimeout(send, 80);
  };
  const at = e => {
    const box = strip.getBoundingClientRect();
    return Math.min(1, Math.max(0, (e.clientX - box.left) / box.width));
  };
  strip.addEventListener("pointerdown", e => {
    held = true; strip.setPointerCapture(e.pointerId);
    handle.style.left = 100 * at(e) + "%"; say(at(e), false);
  });
  strip.addEventListener("pointermove", e => {
    if (!held) return;
    handle.style.left = 100 * at(e) + "%"; say(at(e), false);
  });
  const drop = e => { if (held) { held = false; say(at(e), true); } };
  strip.addEventListener("pointerup", drop);
  strip.addEventListener("pointercancel", () => { held = false; place(); });
  for (const name of ["marks", "line", "low", "high", "legend"]) model.on(name, paint);
  for (const name of ["at", "now", "said", "most"]) model.on(name, place);
  paint(); place();
}
