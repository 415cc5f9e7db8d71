"use strict";

/**
 * Filters rows by what the form says. A row has its element `item`, the name of its `tool`, its `states`, and its `text` in
 * small letters.
 */
function installFilter(rows, noun) {
  const filter = document.getElementById("filter");
  const lists = rows.map((row) => row.item.parentElement);

  function apply() {
    const [tool, state] = [filter.tool.value, filter.state.value];
    const text = filter.text.value.toLowerCase();
    const matching = new Map();
    let shown = 0;
    rows.forEach((row, index) => {
      const matches = (tool === "" || row.tool === tool)
        && (state === "" || row.states.includes(state))
        && (text === "" || row.text.includes(text));
      row.item.hidden = !matches;
      shown += matches;
      matching.set(lists[index], (matching.get(lists[index]) ?? 0) + matches);
    });
    // Headings without a row that matches are hidden. What isn't on the screen takes as much room as its rows would.
    for (let level = matching; level.size > 0;) {
      const above = new Map();
      for (const [group, count] of level) {
        group.hidden = count === 0;
        // No fewer than these, or too many lists are near the screen when all of their rows come back.
        if (group.classList.contains("lazy")) group.style.setProperty("--rows", Math.max(count, 33));
        const parent = group.parentElement;
        if (parent.tagName !== "MAIN") above.set(parent, (above.get(parent) ?? 0) + count);
      }
      level = above;
    }
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

