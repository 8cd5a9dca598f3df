// Updates the page once a second, and sends forms without leaving it. Elements that remain are kept, so focus,
// selection, scroll positions and open details survive. Without scripts, forms and links reload the page instead.
const PERIOD = 1000;
const trouble = document.getElementById("trouble");

const alignElement = (now, then) => {
  for (const { name, value } of then.attributes) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  // Details that the reader has opened stay open.
  for (const { name } of [...now.attributes]) if (!then.hasAttribute(name) && name !== "open") now.removeAttribute(name);
  alignChildren(now, then);
};

const alignChildren = (now, then) => {
  const nextIds = new Set([...then.children].map(({ id }) => id));
  for (const child of [...now.children]) if (child.id && !nextIds.has(child.id)) child.remove();
  const known = new Map([...now.children].map((child) => [child.id, child]));
  let place = now.firstChild;
  for (const next of then.childNodes) {
    const same = next.id ? known.get(next.id) : !place?.id && place?.nodeName === next.nodeName ? place : undefined;
    if (!same) {
      now.insertBefore(document.importNode(next, true), place);
      continue;
    }
    if (same !== place) now.insertBefore(same, place);
    place = same.nextSibling;
    if (next.nodeType === Node.ELEMENT_NODE) alignElement(same, next);
    else if (same.data !== next.data) same.data = next.data;
  }
  while (place) {
    const after = place.nextSibling;
    place.remove();
    place = after;
  }
};

// A reply is dropped if a newer call is under way. Otherwise a switch could jump back.
let newest = 0;
const load = async (url, options) => {
  const call = ++newest;
  try {
    const response = await fetch(url, options);
    const text = await response.text();
    if (call !== newest) return;
    if (!response.ok) throw new Error(`The sandbox refuses: ${text}`);
    const focused = document.activeElement;
    alignElement(document.querySelector("main"), new DOMParser().parseFromString(text, "text/html").querySelector("main"));
    if (focused && !focused.isConnected) document.getElementById("told").focus();
    say("");
  } catch (error) {
    if (call === newest) say(error instanceof TypeError ? "The sandbox does not answer. What you see may be old." : error.message);
  }
};

const say = (text) => {
  if (trouble.textContent !== text) trouble.textContent = text;
};

document.addEventListener("submit", (event) => {
  event.preventDefault();
  const { target: form, submitter } = event;
  load(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, submitter)) });
});

const repeat = async () => {
  if (!document.hidden) await load(location.pathname);
  setTimeout(repeat, PERIOD);
};
setTimeout(repeat, PERIOD);
