// JSON text as a tree of unread tokens. The cases hold numbers that a float cannot represent and keys written with escapes, which
// `JSON.parse` would lose. A scalar is its token; an object is a list of key tokens and values.
export class Tree {
  #text;
  #at = 0;

  /** Parses valid JSON text. */
  static parse(text) {
    const tree = new Tree();
    tree.#text = text;
    const value = tree.#value();
    tree.#blanks();
    if (tree.#at !== text.length) throw new Error(`text behind the value at ${tree.#at}`);
    return value;
  }

  #blanks() {
    while (" \t\r\n".includes(this.#text[this.#at] ?? "x")) this.#at += 1;
  }

  #peek() {
    this.#blanks();
    return this.#text[this.#at];
  }

  #take(wanted) {
    const is = this.#peek() === wanted;
    if (is) this.#at += 1;
    return is;
  }

  #token() {
    this.#blanks();
    const [token] = /^("(\\.|[^"\\])*"|[^\s,:\]}]+)/.exec(this.#text.slice(this.#at, this.#at + 100_000));
    this.#at += token.length;
    return token;
  }

  #value() {
    if (this.#take("{")) {
      const members = [];
      while (!this.#take("}")) {
        const key = this.#token();
        this.#take(":");
        members.push([key, this.#value()]);
        this.#take(",");
      }
      return { members };
    }
    if (this.#take("[")) {
      const items = [];
      while (!this.#take("]")) {
        items.push(this.#value());
        this.#take(",");
      }
      return { items };
    }
    return this.#token();
  }
}

/** Writes a tree as text, without blanks. */
export function write(tree) {
  if (typeof tree === "string") return tree;
  if (tree.items) return `[${tree.items.map(write).join(",")}]`;
  return `{${tree.members.map(([key, value]) => `${key}:${write(value)}`).join(",")}}`;
}

function parent(tree, pointer) {
  const steps = pointer.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = steps.pop();
  return [steps.reduce((inner, step) => get(inner, step), tree), last];
}

function get(tree, step) {
  const found = tree.items ? tree.items[step] : tree.members.find(([key]) => JSON.parse(key) === step)?.[1];
  if (found === undefined) throw new Error(`nothing at ${step}`);
  return found;
}

/** Returns the value at an RFC 6901 pointer; undefined if there is none. */
export function at(tree, pointer) {
  try {
    return pointer === "" ? tree : get(...parent(tree, pointer));
  } catch {
    return undefined;
  }
}

/** Replaces the value at a pointer, or adds it: the last step may be a new key, or `-` to append to an array. */
export function set(tree, pointer, value) {
  const [inner, last] = parent(tree, pointer);
  if (inner.items) {
    inner.items[last === "-" ? inner.items.length : last] = value;
    return;
  }
  const member = inner.members.find(([key]) => JSON.parse(key) === last);
  if (member) member[1] = value;
  else inner.members.push([JSON.stringify(last), value]);
}

/** Removes the member or item at a pointer. */
export function remove(tree, pointer) {
  const [inner, last] = parent(tree, pointer);
  if (inner.items) inner.items.splice(Number(last), 1);
  else inner.members = inner.members.filter(([key]) => JSON.parse(key) !== last);
}
