// Replaces what has changed, and nothing that has the focus. Without scripts the page shows the state of its last load.
const refresh = async () => {
  try {
    const text = await (await fetch(location.href)).text();
    const next = new DOMParser().parseFromString(text, "text/html");
    for (const now of document.querySelectorAll("[data-live]")) {
      const then = next.getElementById(now.id);
      if (then && then.innerHTML !== now.innerHTML && !now.contains(document.activeElement)) now.replaceChildren(...then.childNodes);
    }
  } finally {
    setTimeout(refresh, 1000);
  }
};
setTimeout(refresh, 1000);
