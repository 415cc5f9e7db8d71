"use strict";

/**
 * Filters rows by what the form says. A row has its element `item`, the name of its `tool`, its `states`, and its `text` in
 * small letters. Sections without a row that matches are hidden, too.
 */
function installFilter(rows, noun) {
  const filter = document.getElementById("filter");
  const sections = rows.map((row) => row.item.closest("section"));

  function apply() {
    const [tool, state] = [filter.tool.value, filter.state.value];
    const text = filter.text.value.toLowerCase();
    const hasMatch = new Map();
    let shown = 0;
    rows.forEach((row, index) => {
      const matches = (tool === "" || row.tool === tool)
        && (state === "" || row.states.includes(state))
        && (text === "" || row.text.includes(text));
      row.item.hidden = !matches;
      shown += matches;
      hasMatch.set(sections[index], hasMatch.get(sections[index]) || matches);
    });
    for (const [section, matches] of hasMatch) section.hidden = !matches;
    const all = rows.length === 1 ? `1 ${noun}` : `${rows.length} ${noun}s`;
    filter.shown.value = shown === rows.length ? all : `${shown} of ${all}`;
    document.getElementById("none").hidden = shown > 0;
  }

  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("form")) return;
    filter.text.focus();
    event.preventDefault();
  });
  apply();
}

