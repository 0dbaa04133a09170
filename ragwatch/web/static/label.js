// Keys for the page on which people label answers. Without this script the page is a plain form.
"use strict";

(() => {
  const STORED = "ragwatch.label.single-keys";
  const form = document.getElementById("label");
  const said = document.getElementById("said");
  const help = document.getElementById("help");
  const undo = document.getElementById("undo");
  const single = document.getElementById("single");
  const questions = [...form.querySelectorAll("fieldset")];
  const button = form.querySelector("button[type=submit]");
  let warned = false;

  const say = (text) => { said.textContent = text; };
  const current = () => questions.indexOf(document.activeElement && document.activeElement.closest("fieldset"));
  const chosen = () => questions.some((question) => question.querySelector("input:checked"));

  // Moves the focus to a question, or to the button after the last one.
  const go = (place) => {
    const question = questions[Math.max(place, 0)];
    const target = question ? question.querySelector("input:checked") || question.querySelector("input") : button;
    target.focus({ preventScroll: true });
    (question || button).scrollIntoView({ block: "nearest" });
  };

  const reply = (input, place) => {
    input.checked = true;
    const claim = questions[place].dataset.claim;
    say(`${claim ? `claim ${claim}` : questions[place].querySelector("legend").textContent}: ${input.parentElement.textContent.trim()}`);
    go(place + 1);
  };

  // The current claim is emphasised in the answer.
  form.addEventListener("focusin", () => {
    const place = current();
    const claim = place < 0 ? undefined : questions[place].dataset.claim;
    for (const mark of document.querySelectorAll("mark[data-claims]")) {
      mark.classList.toggle("current", claim !== undefined && mark.dataset.claims.split(" ").includes(claim));
    }
  });

  form.addEventListener("submit", (event) => {
    if (!chosen() && !form.elements.note.value && !warned) {
      event.preventDefault();
      warned = true;
      say("Nothing is chosen. Press Enter again to save the answer as skipped.");
      button.focus();
    }
  });

  const box = single.querySelector("input");
  try {
    box.checked = localStorage.getItem(STORED) !== "off";
  } catch { /* storage is off: keys stay on */ }
  single.hidden = false;
  box.addEventListener("change", () => {
    try {
      localStorage.setItem(STORED, box.checked ? "on" : "off");
    } catch { /* holds for this page only */ }
  });

  document.addEventListener("keydown", (event) => {
    const where = event.target;
    if (event.ctrlKey && event.key === "Enter") {
      form.requestSubmit();
    }
    if (!box.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat || where.matches("textarea, input:not([type=radio])")) {
      return;
    }
    const place = Math.max(current(), 0);
    const replies = questions[place] ? [...questions[place].querySelectorAll("input")] : [];
    const input = replies.find((one) => one.value === event.key) || replies[Number(event.key) - 1];
    if (where !== button && input) {
      reply(input, place);
    } else if (event.key === "Enter" && !where.matches("a, button, summary")) {
      form.requestSubmit();
    } else if (event.key === "u" && undo) {
      undo.requestSubmit();
    } else if (event.key === "?") {
      help.open = !help.open;
      help.scrollIntoView({ block: "nearest" });
    } else if (event.key === "j" || event.key === "k") {
      go(where === button ? questions.length - 1 : place + (event.key === "j" ? 1 : -1));
    } else {
      return;
    }
    event.preventDefault();
  });

  go(0);
})();
