export function render({ model, el }) {
  const grid = document.createElement("div");
  grid.className = "grid";
  el.append(grid);
  const part = (name, tag) => { const one = document.createElement(tag || "div"); one.className = name; return one; };
  const make = number => {
    const cell = part("cell");
    cell.setAttribute("role", "group");
    const top = part("top"), label = part("label", "button"), button = part("act", "button");
    label.type = button.type = "button";
    top.append(label, button);
    const state = part("state"), numbers = part("numbers"), note = part("note");
    cell.append(top, state, numbers, note);
    cell.addEventListener("click", () => model.send_msg({ choose: number }));
    button.addEventListener("click", e => {
      e.stopPropagation(); model.send_msg({ act: button.textContent, learner: number });
    });
    return { cell, label, button, state, numbers, note };
  };
  const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  const made = [];
  const draw = () => {
    const cells = model.cells;
    while (made.length > cells.length) made.pop().cell.remove();
    cells.forEach((data, number) => {
      if (number === made.length) { const one = make(number); made.push(one); grid.append(one.cell); }
      const one = made[number], word = data.label + " " + data.word;
      set(one.label, data.label); set(one.state, data.sign + " " + data.word);
      set(one.numbers, data.numbers); set(one.note, data.note); one.note.title = data.note;
      set(one.button, data.button); one.button.style.display = data.button ? "" : "none";
      one.button.setAttribute("aria-label", data.button + " " + data.label);
      one.cell.style.borderLeftColor = data.colour;
      one.cell.dataset.state = data.word; one.cell.dataset.learner = number;
      one.cell.setAttribute("aria-label", word);
      one.label.setAttribute("aria-label", "choose " + data.label);
      one.label.setAttribute("aria-pressed", number === model.chosen);
      one.cell.classList.toggle("chosen", number === model.chosen);
    });
  };
  model.on("cells", draw); model.on("chosen", draw);
  draw();
}
