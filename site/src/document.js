// One document of the order: its members, each to be changed in place, or its text.
import { decode, replace } from "./bytes.js";
import { make } from "./dom.js";
import { Grid, MAX_BYTES } from "./grid.js";
import { find, place, read, spell } from "./json.js";

/** Most characters of a document here. The module takes 16 MiB; a text field would hang the page. */
export const MAX_TEXT = 1024 * 1024;
/** Longer documents are shown as text at first. */
const MAX_MEMBERS_TEXT = 256 * 1024;
const MAX_ROWS = 4000;
let ids = 0;

/** A document: `name` is its place in the batch contract, `response` or `order`. */
export class DocumentView {
  #name; #base; #hooks; #refused;
  #rows = []; #coverage = []; #isText = false;
  #state = make("span", { class: "state" });
  #body = make("div", { class: "body" });

  /** `hooks` are `changed(name)`, and `say(text)` for what is not a verdict. */
  constructor(name, title, about, isOpen, hooks) {
    this.#name = name;
    this.#hooks = hooks;
    const summary = make("summary", {}, make("h3", {}, title), make("span", { class: "quiet" }, about), this.#state);
    this.element = make("details", { class: "card document", open: isOpen, toggle: () => this.#draw() }, summary, this.#body);
    this.text = "";
  }
  /** Shows a document of another order. `base` is the honest one; undefined if there is nothing to compare with. One that differs is open. */
  show(text, base) {
    this.text = text;
    this.#base = base;
    this.#refused = undefined;
    if (base !== undefined && base !== text) this.element.open = true;
    const isOwn = base === undefined && text === "";
    this.#isText = isOwn || text.length > MAX_MEMBERS_TEXT || (text !== "" && "problem" in read(text));
    this.#draw(true);
  }
  /** Takes what the bytes are; locations are those of the whole order. */
  cover(coverage) {
    this.#coverage = coverage.filter(({ at }) => at.startsWith(`/${this.#name}/`)).map((one) => ({ ...one, at: one.at.slice(this.#name.length + 1) }));
    this.#markRows();
  }
  /** Marks the place of a refusal; undefined for none. Returns whether it is in this document. */
  refuse(at) {
    const { pointer, range } = place(at ?? "");
    const prefix = `/${this.#name}`;
    const isHere = pointer === prefix || pointer.startsWith(`${prefix}/`);
    if (!isHere && !this.#refused) return false;
    this.#refused = isHere ? { pointer: pointer.slice(prefix.length), range } : undefined;
    if (isHere) this.element.open = true;
    this.#draw();
    this.#markRows();
    return isHere;
  }
  /** Moves the focus to the refused place, or else to the first change. Returns whether there is one. */
  reveal(isFocus = true) {
    const row = this.#refusedRow() ?? this.#rows.find(({ row: line }) => line.classList.contains("changed"));
    if (!row) return false;
    if (this.#refused?.range && row.bytes) this.#openGrid(row);
    row.row.scrollIntoView({ block: "center", behavior: "instant" });
    if (isFocus) row.grid && this.#refused?.range ? row.grid.focus(this.#refused.range[0]) : (row.input ?? row.toggle ?? row.row).focus();
    return true;
  }
  #draw(isNew = false) {
    if (isNew) {
      this.#rows = [];
      this.#body.replaceChildren();
    }
    if (!this.element.open || this.#body.childElementCount > 0) return this.#markState();
    const mode = (isText, label) => make("button", { type: "button", "aria-pressed": String(this.#isText === isText), click: () => this.#switch(isText) }, label);
    this.#body.append(make("div", { class: "modes", role: "group", "aria-label": `${this.#name}: how it is shown` }, mode(false, "Members"), mode(true, "Text")));
    if (this.#isText) this.#drawText();
    else this.#drawMembers();
    this.#markRows();
  }
  #switch(isText) {
    this.#isText = isText;
    this.#draw(true);
    this.#body.querySelector("[aria-pressed=true]").focus();
  }
  #drawText() {
    const area = make("textarea", {
      "aria-label": `text of the ${this.#name}`, spellcheck: "false", autocomplete: "off", rows: 14, input: ({ target }) => this.#take(target, this.text) && this.#set(target.value),
      // Before the browser lays it out: sixteen megabytes in a text field would stop the page.
      paste: (event) => {
        const { length } = event.clipboardData?.getData("text/plain") ?? "";
        if (length <= MAX_TEXT) return;
        event.preventDefault();
        this.#tooLong(length);
      },
    });
    area.value = this.text;
    this.#body.append(area);
  }
  /** Returns whether what was typed into a field can be taken; what is too long is put back. */
  #take(field, before) {
    if (field.value.length <= MAX_TEXT) return true;
    this.#tooLong(field.value.length);
    field.value = before;
    return false;
  }
  #tooLong(length) {
    this.#hooks.say(`The text was not taken: it has ${length} characters, and this page takes at most ${MAX_TEXT}. The program and the library take 16 MiB.`);
  }
  #drawMembers() {
    if (this.text === "") return void this.#body.append(make("p", { class: "quiet" }, "None. Choose Text to write one."));
    const { value, problem } = read(this.text);
    if (problem) return void this.#body.append(make("p", { class: "quiet" }, `It cannot be shown as members: ${problem}. Choose Text.`));
    const list = make("ul", { class: "tree" });
    this.#body.append(list);
    const root = value.members ? value : { members: [{ key: this.#name, value }] };
    this.#addRows(list, root.members);
    if (this.#rows.length >= MAX_ROWS) this.#body.append(make("p", { class: "quiet" }, `Only the first ${MAX_ROWS} members are shown. Choose Text for all.`));
  }
  #addRows(list, members) {
    for (const { key, value } of members) {
      if (this.#rows.length >= MAX_ROWS) return;
      const bytes = decode(value);
      const row = { value, bytes, was: make("p", { class: "was", hidden: true }), what: make("span", { class: "what" }) };
      this.#rows.push(row);
      if (value.members && !bytes) {
        row.row = make("div", { class: "name", tabindex: -1 }, make("span", {}, key), row.was);
        const inner = make("ul");
        list.append(make("li", {}, row.row, inner));
        this.#addRows(inner, value.members);
        continue;
      }
      const id = `v${(ids += 1)}`;
      const path = this.#path(value);
      if (!value.members) {
        row.input = make("input", { id, "aria-label": path, spellcheck: "false", autocomplete: "off", autocapitalize: "off", input: ({ target }) => this.#type(row, target) });
        row.input.value = value.text;
      }
      if (bytes) {
        row.toggle = make("button", { type: "button", class: "small", "aria-expanded": "false", "aria-label": `${bytes.length} bytes of ${path}`, click: () => (row.grid ? this.#closeGrid(row) : this.#openGrid(row)) }, `${bytes.length} bytes`);
      }
      const label = row.input ? make("label", { for: id }, key) : make("span", { class: "label" }, key);
      row.row = make("li", { class: "row" }, make("div", { class: "field" }, label, row.input, row.what, row.toggle), row.was);
      list.append(row.row);
    }
  }
  /** Names a value for screen readers. */
  #path(value) {
    return `${this.#name} ${value.pointer.slice(1).replaceAll("/", " ")}`;
  }
  #type(row, input) {
    if (!this.#take(input, row.value.text)) return;
    const { start, end, kind } = row.value;
    this.#splice(start, end, spell(input.value, kind));
  }
  /** Replaces a part of the text. The members stay the same, so their fields do too, with the focus in one of them. */
  #splice(start, end, text) {
    this.#set(this.text.slice(0, start) + text + this.text.slice(end), () => {
      const values = this.#listed(read(this.text).value);
      this.#rows.forEach((row, index) => {
        row.value = values[index];
        const bytes = decode(row.value);
        if (bytes?.length !== row.bytes?.length && row.grid) this.#closeGrid(row);
        row.bytes = bytes;
        if (row.toggle) {
          row.toggle.hidden = !bytes;
          row.toggle.textContent = `${bytes?.length} bytes`;
          row.toggle.setAttribute("aria-label", `${bytes?.length} bytes of ${this.#path(row.value)}`);
        }
        if (row.input && row.input.value !== row.value.text && document.activeElement !== row.input) row.input.value = row.value.text;
        row.grid?.update(bytes);
      });
    });
  }
  /** Returns the values that have rows, in the order of the rows. */
  #listed(value) {
    const list = (members) => members.flatMap(({ value: one }) => [one, ...(one.members && !decode(one) ? list(one.members) : [])]);
    return list(value.members ? value.members : [{ value }]);
  }
  #set(text, then) {
    this.text = text;
    then?.();
    this.#refused = undefined;
    this.#markRows();
    this.#hooks.changed(this.#name);
  }
  #openGrid(row) {
    if (row.grid || !row.bytes) return;
    const change = (index, byte) => {
      const { start, end, text } = replace(row.value, index, byte);
      this.#splice(start, end, text);
    };
    row.grid = new Grid(this.#path(row.value), row.bytes, change);
    if (row.bytes.length > MAX_BYTES) row.grid.element.append(make("p", { class: "quiet" }, `Only the first ${MAX_BYTES} bytes are shown.`));
    row.was.before(row.grid.element);
    row.toggle.setAttribute("aria-expanded", "true");
    this.#markRows();
  }
  #closeGrid(row) {
    row.grid.element.remove();
    row.grid = undefined;
    row.toggle.setAttribute("aria-expanded", "false");
  }
  #refusedRow() {
    if (!this.#refused) return undefined;
    // A missing member has no row of its own: then the object without it is marked.
    for (let { pointer } = this.#refused; pointer !== ""; pointer = pointer.slice(0, pointer.lastIndexOf("/"))) {
      const row = this.#rows.find(({ value }) => value.pointer === pointer);
      if (row) return row;
    }
    return undefined;
  }
  #markRows() {
    const base = this.#base === undefined || this.#base === "" ? undefined : read(this.#base).value;
    const refused = this.#refusedRow();
    const owner = this.#name === "registry" ? "The pinned registry" : "The honest order";
    for (const row of this.#rows) {
      const { pointer } = row.value;
      const honest = base && find(base, pointer);
      const isLeaf = row.input !== undefined || row.toggle !== undefined;
      const spelling = honest && this.#base.slice(honest.start, honest.end);
      const isChanged = base !== undefined && (isLeaf ? spelling !== this.text.slice(row.value.start, row.value.end) : honest === undefined);
      row.row.classList.toggle("changed", isChanged);
      row.row.classList.toggle("refused", row === refused);
      row.input?.toggleAttribute("aria-invalid", row === refused);
      const gone = !isLeaf && honest?.members?.filter(({ key }) => !row.value.members.some((member) => member.key === key)).map(({ key }) => key);
      const was = isChanged ? (honest ? `${owner}: ${shorten(spelling)}` : `${owner} does not have it.`) : gone?.length ? `Missing here: ${gone.join(", ")}` : "";
      row.was.hidden = was === "";
      row.was.textContent = was;
      const covered = this.#coverage.filter(({ at }) => at === pointer);
      row.what.textContent = covered.length === 1 ? covered[0].what : "";
      row.row.dataset.topic = covered.length === 1 ? covered[0].topic.replaceAll(" ", "-") : "";
      row.grid?.mark(covered, honest && decode(honest), row === refused ? this.#refused.range : undefined);
    }
    this.#markState();
  }
  #markState() {
    const isChanged = this.#base !== undefined && this.#base !== this.text;
    this.#state.textContent = this.#refused ? "refused here" : isChanged ? "changed" : "";
    this.element.classList.toggle("has-refusal", this.#refused !== undefined);
    this.element.classList.toggle("has-change", isChanged && !this.#refused);
  }
}

const shorten = (text) => (text.length > 300 ? `${text.slice(0, 300)}…` : text);
