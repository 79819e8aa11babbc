// Everything that can be done on a page, found by typing; what no command is named is handed on as a place to go to.
const openPalette = (dialog, commands, act, places) => dialog("Commands", box => {
  const input = document.createElement("input"), list = document.createElement("ul");
  input.type = "text"; input.id = "wb-command"; input.autocomplete = "off"; input.spellcheck = false;
  input.placeholder = places || "type a part of a command";
  list.id = "wb-commands"; list.className = "commands"; list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "commands"); list.tabIndex = -1;
  for (const [key, value] of Object.entries({
    role: "combobox", "aria-label": "command", "aria-expanded": "true", "aria-controls": list.id,
    "aria-autocomplete": "list",
  })) input.setAttribute(key, value);
  let shown = [], at = 0;
  const run = said => { box.close(); box.remove(); act(said); };
  const mark = to => {
    at = shown.length ? (to + shown.length) % shown.length : 0;
    [...list.children].forEach((one, number) => one.setAttribute("aria-selected", number === at));
    const here = list.children[at];
    if (here) { input.setAttribute("aria-activedescendant", here.id); here.scrollIntoView({ block: "nearest" }); }
    else input.removeAttribute("aria-activedescendant");
  };
  const fill = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = commands.filter(([text]) => words.every(word => text.toLowerCase().includes(word)));
    if (places && input.value.trim()) shown = [...shown, ["go to " + input.value.trim(), "", { do: "find", text: input.value.trim() }]];
    list.replaceChildren(...shown.map(([text, keys, said], number) => {
      const row = document.createElement("li"), name = document.createElement("span");
      row.id = "wb-command-" + number; row.setAttribute("role", "option");
      name.textContent = text; row.append(name);
      for (const key of keys.split(" ").filter(Boolean)) {
        const one = document.createElement("kbd");
        one.textContent = key; row.append(" ", one);
      }
      row.addEventListener("click", () => run(said));
      return row;
    }));
    mark(0);
  };
  input.addEventListener("input", fill);
  input.addEventListener("keydown", e => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); mark(at + (e.key === "ArrowDown" ? 1 : -1)); }
    else if (e.key === "Enter" && shown[at]) { e.preventDefault(); run(shown[at][2]); }
  });
  box.append(input, list);
  fill();
});
