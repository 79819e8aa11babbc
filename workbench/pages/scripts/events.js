const SIGNS = { past: "←", future: "→", beside: "∥", now: "●" };
const MEANINGS = {
  past: "in the past of the event", future: "in its future", beside: "neither in its past nor in its future",
  now: "the event itself",
};
const scroller = one => {  // the nearest box around it that scrolls by itself: the page stays where it is
  for (let at = one; at; at = at.parentElement || (at.getRootNode() || {}).host) {
    if (at !== document.documentElement && /(auto|scroll)/.test(getComputedStyle(at).overflowY)) return at;
  }
  return null;
};
export function render({ model, el }) {
  const list = document.createElement("div");
  list.setAttribute("role", "list");
  el.append(list);
  const draw = () => {
    list.setAttribute("aria-label", model.label);
    list.tabIndex = model.rows.some(data => data.event >= 0) ? -1 : 0;  // who has no mouse can scroll it
    list.replaceChildren(...model.rows.map(data => {
      const row = document.createElement("div");
      row.className = "row " + data.rel + (data.at ? " at" : "");
      row.setAttribute("role", "listitem");
      if (data.rel) {
        const sign = document.createElement("span");
        sign.className = "sign"; sign.textContent = SIGNS[data.rel]; sign.title = MEANINGS[data.rel];
        row.append(sign);
        row.classList.add("signed");
      }
      for (const key of ["time", "who", "text"]) {
        const cell = document.createElement(key === "time" && data.event >= 0 ? "button" : "span");
        cell.className = key; cell.textContent = data[key];
        row.append(cell);
      }
      if (data.event >= 0) {
        const button = row.querySelector("button");
        button.type = "button"; button.tabIndex = data.at || data.rel === "now" ? 0 : -1;
        button.setAttribute("aria-label", "go to event " + data.event + " at " + data.time);
        row.classList.add("can");
        row.dataset.event = data.event; row.dataset.rel = data.rel;
        row.addEventListener("click", () => model.send_msg({ event: data.event }));
      }
      return row;
    }));
    const here = list.querySelector(".at") || list.querySelector(".now");
    const box = here && scroller(here);
    if (box) box.scrollTop += here.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
  };
  model.on("rows", draw);
  draw();
}
