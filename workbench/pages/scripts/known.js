// What a message of the server brings is known to it: Bokeh would send it back whole with the next message, and the
// server would complain that it knows it already.
const rememberKnown = document => {
  if (document.workbenchKnown) return;
  document.workbenchKnown = true;
  const apply = document.apply_json_patch.bind(document);
  document.apply_json_patch = (patch, buffers) => {
    const own = new Set(document._new_models);
    apply(patch, buffers);
    for (const one of document._new_models) if (!own.has(one)) document._new_models.delete(one);
  };
};
