// The bytes of a payload, to be changed one by one. It is one stop of the Tab key; arrows move inside.
import { make } from "./dom.js";

/** Most bytes that are shown; payloads beyond this are changed as text. */
export const MAX_BYTES = 4096;

/** A grid of bytes; `label` is the payload's name for screen readers, and `change(index, byte)` is called for each byte that is changed. */
export class Grid {
  #bytes; #change; #columns;
  #cells = []; #topics = []; #current = 0; #digit = "";
  #info = make("p", { class: "quiet info" });

  constructor(label, bytes, change) {
    this.#bytes = bytes.slice(0, MAX_BYTES);
    this.#change = change;
    this.#columns = matchMedia("(max-width: 44rem)").matches ? 8 : 16;
    const table = make("div", { class: "bytes", role: "grid", "aria-label": `bytes of ${label}`, keydown: (event) => this.#press(event) });
    for (let start = 0; start < this.#bytes.length; start += this.#columns) {
      const row = make("div", { role: "row", class: "byte-row" }, make("span", { role: "rowheader", class: "offset" }, String(start)));
      for (let index = start; index < Math.min(start + this.#columns, this.#bytes.length); index += 1) {
        const cell = make("span", { role: "gridcell", tabindex: index === 0 ? 0 : -1, click: () => this.#flip(index), focus: () => this.#moved(index) });
        this.#cells.push(cell);
        row.append(cell);
      }
      table.append(row);
    }
    const help = "Click a byte, or press Enter, to flip its last bit. Type two hex digits to set it.";
    this.element = make("div", { class: "payload" }, make("p", { class: "quiet" }, help), table, this.#info);
    this.update(this.#bytes);
  }
  /** Shows other bytes of the same length. */
  update(bytes) {
    this.#bytes = bytes.slice(0, this.#cells.length);
    this.#cells.forEach((cell, index) => {
      const digits = bytes[index].toString(16).padStart(2, "0");
      if (cell.textContent !== digits) cell.textContent = digits;
      cell.classList.toggle("zero", bytes[index] === 0);
    });
    this.#describe();
  }
  /** Colours the bytes by what they are, and marks those that differ from the honest order and those that were refused. */
  mark(coverage, base, range) {
    this.#topics = this.#cells.map((_, index) => coverage.find(({ start, end }) => start !== null && start <= index && index < end));
    this.#cells.forEach((cell, index) => {
      const topic = this.#topics[index]?.topic.replaceAll(" ", "-");
      const isChanged = base !== undefined && base[index] !== this.#bytes[index];
      const isRefused = range !== undefined && range[0] <= index && index < range[1];
      cell.className = [topic && `t-${topic}`, this.#bytes[index] === 0 && "zero", isChanged && "changed", isRefused && "refused"].filter(Boolean).join(" ");
    });
    this.#describe();
  }
  /** Moves the focus to a byte. */
  focus(index) {
    this.#cells[Math.min(Math.max(index, 0), this.#cells.length - 1)]?.focus();
  }
  #describe() {
    const byte = this.#bytes[this.#current] ?? 0;
    const topic = this.#topics[this.#current];
    const isRefused = this.#cells[this.#current]?.classList.contains("refused");
    const what = `${topic ? `, ${topic.what}` : ""}${isRefused ? ", refused" : ""}`;
    this.#info.textContent = `Byte ${this.#current} of ${this.#bytes.length}: 0x${byte.toString(16).padStart(2, "0")} (${byte})${what}`;
    this.#cells[this.#current]?.setAttribute("aria-label", `byte ${this.#current}: ${byte.toString(16).padStart(2, "0")}${what}`);
  }
  #moved(index) {
    const before = this.#cells[this.#current];
    before.tabIndex = -1;
    before.removeAttribute("aria-label");
    if (index !== this.#current) this.#digit = "";
    this.#current = index;
    this.#cells[index].tabIndex = 0;
    this.#describe();
  }
  #flip(index) {
    this.#cells[index].focus();
    this.#change(index, this.#bytes[index] ^ 1);
  }
  #press(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.#columns, ArrowDown: this.#columns, Home: -this.#current, End: this.#bytes.length - 1 - this.#current };
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key in steps) this.focus(this.#current + steps[key]);
    else if (key === "Enter" || key === " ") this.#flip(this.#current);
    else if (/^[0-9a-f]$/i.test(key)) {
      this.#digit += key;
      if (this.#digit.length === 2) {
        this.#change(this.#current, parseInt(this.#digit, 16));
        this.#digit = "";
      }
    } else return;
    event.preventDefault();
  }
}
