// One entry in the history of the browser for what a person does once. A click may set several controls, and Streamlit writes
// each into the address with an entry of its own: the back button would land on states that nobody chose.

function joinEntries() {
  if (window.joinsEntries) return;
  window.joinsEntries = true;
  const { pushState, replaceState } = history;
  let isFirst = true;
  for (const name of ["pointerdown", "keydown", "popstate"]) window.addEventListener(name, () => (isFirst = true), true);
  history.pushState = (...entry) => {
    (isFirst ? pushState : replaceState).apply(history, entry);
    isFirst = false;
  };
}
