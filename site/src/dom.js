// Elements without markup: text from outside is only ever set as text.

/** Creates an element. Properties are attributes as in HTML, and functions listen to events; children that are undefined or false are left out. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== undefined && child !== false));
  return element;
}
/** Returns an element of the page. */
export const by = (id) => document.getElementById(id);

/** Returns the rows of a description list; rows without a value are left out. */
export function rows(pairs) {
  const kept = pairs.filter(([, value]) => value !== undefined && value !== "");
  return make("dl", { class: "why" }, ...kept.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}
/** Returns text as code. */
export const code = (text) => make("code", {}, text);
