export function render({ model, el }) {
  el.style.display = "none";
  if (window.workbenchLeave) window.workbenchLeave();  // of a page that this one takes the place of
  Bokeh.documents.forEach(rememberKnown);
  const root = document.documentElement;
  root.lang = "en";
  const main = document.querySelector("body > [data-root-id]");
  if (main) main.setAttribute("role", "main");

  const keep = theme => { try { localStorage.setItem("workbench-theme", theme); } catch { } };
  const stored = () => { try { return localStorage.getItem("workbench-theme"); } catch { return null; } };
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const wear = () => {
    const theme = stored() || (system.matches ? "dark" : "light");
    if (root.dataset.theme !== theme) { root.dataset.theme = theme; model.send_msg({ theme }); }
  };
  const turn = () => { keep(root.dataset.theme === "dark" ? "light" : "dark"); wear(); };
  delete root.dataset.theme;
  wear();
  system.addEventListener("change", wear);

  const dialog = (title, fill) => {
    const before = document.querySelector("dialog.wb");
    if (before) { before.close(); return; }
    const box = document.createElement("dialog"), head = document.createElement("h2");
    const close = document.createElement("button");
    box.className = "wb"; box.setAttribute("aria-label", title);
    head.textContent = title; close.textContent = "close";
    close.addEventListener("click", () => box.close());
    box.addEventListener("close", () => box.remove());
    box.append(head); fill(box); box.append(close);
    document.body.append(box);
    box.showModal();
  };
  const sheet = () => dialog("Keys of this page", box => {
    const table = document.createElement("table");
    for (const [keys, what] of model.sheet) {
      const row = table.insertRow(), cell = row.insertCell();
      for (const key of keys.split(" ")) {
        const one = document.createElement("kbd");
        one.textContent = key; cell.append(one, " ");
      }
      row.insertCell().textContent = what;
    }
    const head = document.createElement("h2"), signs = document.createElement("div");
    head.textContent = "Signs of learners"; signs.className = "signs";
    for (const [sign, words] of model.signs) {
      const one = document.createElement("span"), mark = document.createElement("b");
      mark.textContent = sign; mark.setAttribute("aria-hidden", "true");
      one.append(mark, " " + words); signs.append(one);
    }
    box.append(table, head, signs);
  });

  const copied = async (what, text) => {
    let done = false;
    try { await navigator.clipboard.writeText(text); done = true; } catch { }
    dialog(done ? what + ": copied" : what + ": copy it from here", box => {
      const one = document.createElement("pre");
      one.textContent = text; one.tabIndex = 0; box.append(one);
    });
  };
  const save = (name, href) => {
    const link = document.createElement("a");
    link.download = name; link.href = href; document.body.append(link); link.click(); link.remove();
  };
  const picture = async type => {
    const found = [];
    for (const view of Bokeh.index.query(one => one.model.type === "Figure")) {
      if (view.el.getClientRects().length) found.push(view);
    }
    found.sort((a, b) => a.el.getBoundingClientRect().top - b.el.getBoundingClientRect().top);
    let number = 0;
    for (const view of found) {
      const link = URL.createObjectURL(await view.export(type).to_blob());
      save(model.picture + (found.length > 1 ? "-" + ++number : "") + "." + type, link);
      setTimeout(() => URL.revokeObjectURL(link), 10000);
    }
  };

  const load = () => {
    const input = document.createElement("input");
    input.type = "file"; input.accept = ".json,application/json";
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (file) model.send_msg({ layout: file.size > 65536 ? "" : await file.text() });
    });
    input.click();
  };

  const name = () => {  // what figures are, for those who hear the page
    for (const view of Bokeh.index.query(one => one.model.type === "Figure")) {
      const layer = view.canvas_view && view.canvas_view.events_el, title = view.model.title;
      const text = "figure: " + ((title && title.text) || "") + ", its numbers stand in the tables of the CSV export";
      if (layer && layer.getAttribute("aria-label") !== text) {
        layer.setAttribute("role", "img"); layer.setAttribute("aria-label", text);
      }
    }
  };
  const label = () => {  // Panel draws the words of a check box beside it without saying that they are its name
    for (const view of Bokeh.index.query(one => one.model.type === "Checkbox")) {
      const box = view.shadow_el.querySelector("input");
      if (box && box.getAttribute("aria-label") !== view.model.label) box.setAttribute("aria-label", view.model.label);
    }
  };
  const naming = setInterval(() => { name(); label(); }, 500);

  let asking = 0;
  const ask = async () => {  // a server that was started anew knows nothing of this page's token
    const place = window.location.pathname.replace(/\/$/, "") + "/metadata" + window.location.search;
    let status = 0;
    try { status = (await fetch(place, { cache: "no-store" })).status; } catch { }
    if (status !== 403 || !asking) return;
    answered();
    root.dataset.stale = "";
    const bar = document.createElement("div");
    bar.className = "wb-stale"; bar.setAttribute("role", "alert");
    bar.textContent = "This page's address is no longer valid: the server was started anew. " +
      "Open the address that it printed; what is shown here is old.";
    document.body.prepend(bar);
  };
  const lost = () => { if (!asking && !("stale" in root.dataset)) asking = setInterval(ask, 1500); };
  const answered = () => { clearInterval(asking); asking = 0; };
  for (const one of Bokeh.documents) {
    one.on_event("connection_lost", lost); one.on_event("client_reconnected", answered);
  }

  const path0 = e => e.composedPath();
  const typing = e => path0(e).some(one => one.tagName && (
    /^(TEXTAREA|SELECT)$/.test(one.tagName) || one.isContentEditable
    || (one.tagName === "INPUT" && !/^(checkbox|radio|button)$/.test(one.type))
    || ((one.tagName === "BUTTON" || one.tagName === "A" || one.tagName === "INPUT" || one.tagName === "SUMMARY"
         || one.getAttribute("role") === "button") && (e.key === " " || e.key === "Enter"))));
  const key = e => {
    if (e.altKey || typing(e) || document.querySelector("dialog.wb[open]")) return;
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
      e.preventDefault(); openPalette(dialog, model.commands, act, model.places); return;
    }
    if (e.ctrlKey || e.metaKey) return;
    if (e.key === "/" || (model.places && e.key.toLowerCase() === "g")) { e.preventDefault(); openPalette(dialog, model.commands, act, model.places); return; }
    if (e.key === "?") { e.preventDefault(); sheet(); return; }
    if (e.key.toLowerCase() === "t" && !e.shiftKey) { e.preventDefault(); turn(); return; }
    const name = e.key.length === 1 ? e.key.toLowerCase() : e.key;
    if (!model.keys.includes(name)) return;
    e.preventDefault();
    model.send_msg({ key: name, shift: e.shiftKey });
  };
  const own = {
    theme: turn, sheet, png: () => picture("png"), svg: () => picture("svg"), load,
    link: () => copied("Link to this view", window.location.href),
    commands: () => openPalette(dialog, model.commands, act, model.places),
  };
  const act = said => { if (Object.hasOwn(own, said.do || "")) own[said.do](); else model.send_msg(said); };
  const click = e => {
    const hit = path0(e).find(one => one.dataset && one.dataset.do);
    if (!hit) return;
    e.preventDefault();
    act({ ...hit.dataset });
    const root = hit.getRootNode(), same = JSON.stringify({ ...hit.dataset });  // it may be drawn anew: focus stays on it
    setTimeout(() => {
      if (hit.isConnected || (root.activeElement && root.activeElement !== document.body)) return;
      const now = [...root.querySelectorAll("[data-do]")].find(one => JSON.stringify({ ...one.dataset }) === same);
      if (now) now.focus();
    }, 400);
  };
  const back = () => model.send_msg({ search: window.location.search });
  window.addEventListener("keydown", key);
  window.addEventListener("popstate", back);
  document.addEventListener("click", click);
  const placed = () => {
    const { address, replace } = model.place;
    if (!address || address === window.location.search) return;
    if (replace) history.replaceState(null, "", address); else history.pushState(null, "", address);
  };
  model.on("place", placed);
  placed();  // what was said before this page could hear it
  model.on("wear", () => { if (model.wear) { keep(model.wear); wear(); } });
  model.on("to", () => { if (model.to) window.location.assign(model.to); });
  model.on("text", () => { if (model.text.text) copied(model.text.title, model.text.text); });
  model.on("file", () => {
    if (!model.file.data) return;
    const bytes = Uint8Array.from(atob(model.file.data), one => one.charCodeAt(0));
    const link = URL.createObjectURL(new Blob([bytes], { type: model.file.type }));
    save(model.file.name, link);
    setTimeout(() => URL.revokeObjectURL(link), 10000);
  });
  window.workbenchLeave = () => {
    window.workbenchLeave = null;
    clearInterval(naming); answered();
    window.removeEventListener("keydown", key);
    window.removeEventListener("popstate", back);
    document.removeEventListener("click", click);
    system.removeEventListener("change", wear);
  };
}
