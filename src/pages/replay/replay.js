// Every row is in the page already. This script filters the rows.
const rows = Array.from(document.querySelectorAll("li"), (item) => ({
  item,
  tool: item.querySelector(".name").textContent,
  states: [item.dataset.state],
  text: item.textContent.toLowerCase(),
}));
installFilter(rows, "call");
// A link to a call opens it.
const linked = location.hash && document.getElementById(location.hash.slice(1));
if (linked && linked.querySelector("details")) linked.querySelector("details").open = true;
