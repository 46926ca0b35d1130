// What pages gain where scripts run: buttons that copy, and times as people say them. Pages are whole without it.

const UNITS = [["year", 31_557_600], ["month", 2_629_800], ["week", 604_800], ["day", 86_400], ["hour", 3_600], ["minute", 60]];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

// How long ago, in the largest unit that fits. The exact time stays in the title.
function say(time) {
  const seconds = (Date.parse(time.dateTime) - Date.now()) / 1_000;
  if (Number.isNaN(seconds)) return;
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["minute", 60];
  time.title ||= time.textContent;
  time.textContent = Math.abs(seconds) < 60 ? "just now" : words.format(Math.trunc(seconds / length), unit);
}

function addCopyButton(element) {
  const button = document.createElement("button");
  const what = element.dataset.copies;
  const rest = () => {
    button.textContent = "Copy";
  };
  Object.assign(button, { type: "button", className: "copy", ariaLabel: `Copy ${what}` });
  rest();
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(element.dataset.copy ?? element.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(rest, 2_000);
  });
  element.after(button);
}

const all = (selector) => [...document.querySelectorAll(selector)];
all("time.ago").forEach(say);
// Browsers offer the clipboard only to pages that came over https.
if (navigator.clipboard) all("[data-copies]").forEach(addCopyButton);
