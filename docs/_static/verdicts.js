// Buttons above a table of claims show the rows of one verdict.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector(".verdicts");
  if (!place) return;
  const table = document.querySelector("table");
  const heads = [...table.querySelectorAll("th")].map((th) => th.textContent.trim());
  const column = heads.indexOf("verdict");
  const rows = [...table.querySelectorAll("tbody tr")];
  const verdict = (row) => row.children[column].textContent.trim();
  const counts = rows.reduce((n, row) => n.set(verdict(row), (n.get(verdict(row)) || 0) + 1), new Map());
  const show = (wanted, button) => {
    rows.forEach((row) => { row.hidden = wanted !== null && verdict(row) !== wanted; });
    place.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", b === button));
  };
  const add = (text, wanted) => {
    const button = document.createElement("button");
    button.textContent = text;
    button.addEventListener("click", () => show(wanted, button));
    place.append(button);
    return button;
  };
  const all = add(`all (${rows.length})`, null);
  counts.forEach((n, name) => add(`${name} (${n})`, name));
  show(null, all);
});
