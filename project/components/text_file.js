// Sends the text of the chosen file, or the beginning of a long one. The same file may be chosen again after a change.
export default function ({ parentElement, data, setTriggerValue }) {
  const input = parentElement.querySelector("input");
  parentElement.querySelector("span").textContent = data.label;
  input.accept = data.kinds;
  input.onchange = async () => {
    const [file] = input.files;
    input.value = "";
    if (file) setTriggerValue("text", await file.slice(0, data.most).text());
  };
}
