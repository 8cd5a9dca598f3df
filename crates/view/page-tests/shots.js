// Screenshots, and the small copies of them that are kept.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { looks, open } from "./browser.js";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
export const references = here("references/");
/** All of them together, in bytes. */
export const LARGEST_REFERENCES = 400_000;
/** The mean difference of brightness, of 255, that fonts may make, and not a broken layout. */
export const TOLERANCE = 2;
/** The looks of which references are kept. */
export const kept = ["light", "narrow"];

/** Takes the whole page in a look, and keeps it in shots/. */
export const shoot = (browser, { name, path }, look, options = {}) =>
  open(browser, path, { ...looks[look], ...options }, async (page) => {
    await options.before?.(page);
    mkdirSync(here("shots/"), { recursive: true });
    return page.screenshot({ path: here(`shots/${options.name ?? name}-${look}.png`), fullPage: true });
  });

/** Makes the copy that is kept: a quarter as wide and high, so 320 pixels of 1280, and grey. */
export const shrink = async (page, png) => {
  const url = await page.evaluate(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.round(image.naturalWidth / 4), Math.round(image.naturalHeight / 4)];
    const context = canvas.getContext("2d");
    context.filter = "grayscale(1)";
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/webp", 0.4);
  }, `data:image/png;base64,${png.toString("base64")}`);
  return Buffer.from(url.split(",")[1], "base64");
};

/** The reference of a page, and its path. */
export const reference = (name, look) => `${references}${name}-${look}.webp`;
export const keep = (name, look, webp) => {
  mkdirSync(references, { recursive: true });
  writeFileSync(reference(name, look), webp);
};

/**
 * Compares a screenshot with a reference: how much their heights differ, as a share of the reference's, and the mean difference of
 * brightness of their columns, which are eight pixels wide, in the part above the facts and in all of the page. Columns, because the
 * letters of another font move lines up and down.
 */
export const compare = (page, name, look, webp, other = readFileSync(reference(name, look))) =>
  page.evaluate(
    async (urls) => {
      const images = await Promise.all(
        urls.map(async (url) => {
          const image = new Image();
          image.src = url;
          await image.decode();
          return image;
        }),
      );
      const columns = (image, height) => {
        const canvas = new OffscreenCanvas(image.naturalWidth, height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, image.naturalWidth, height);
        const sums = Array(Math.ceil(image.naturalWidth / 8)).fill(0);
        for (let index = 0; index < data.length; index += 4) sums[Math.floor(((index / 4) % image.naturalWidth) / 8)] += data[index];
        return sums.map((sum) => sum / 8 / height);
      };
      const [one, reference] = images;
      const difference = (height) => {
        const [left, right] = images.map((image) => columns(image, height ?? image.naturalHeight));
        return left.reduce((sum, value, index) => sum + Math.abs(value - right[index]), 0) / left.length;
      };
      return { height: one.naturalHeight / reference.naturalHeight - 1, top: difference(Math.round(one.naturalWidth / 2)), all: difference() };
    },
    [webp, other].map((bytes) => `data:image/webp;base64,${bytes.toString("base64")}`),
  );
