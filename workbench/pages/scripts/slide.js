export function render({ model, el }) {
  const label = document.createElement("label"), said = document.createElement("span");
  const range = document.createElement("input");
  range.type = "range"; range.min = 0; range.max = model.most; range.step = 1;
  label.append(said, range);
  el.append(label);
  let held = false;
  const show = () => {
    if (!held) range.value = model.now;
    said.textContent = model.label + ": " + range.value;
    range.setAttribute("aria-label", model.label);
  };
  range.addEventListener("input", () => { held = true; said.textContent = model.label + ": " + range.value; });
  range.addEventListener("change", () => { held = false; model.send_msg({ value: Number(range.value) }); });
  model.on("now", show); model.on("label", show);
  show();
}
