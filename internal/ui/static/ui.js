// The script keeps an open page up to date, and filters while its user types. Everything else
// works without it.
//
// Attributes that pages use:
//   data-copy="TEXT"   on a <button type="button" class="copy">: copies the text.
//   data-dialog="ID"   on a link or button: opens <dialog id="ID">; without a script, a link's href leads to the second step.
//   data-close         on a <button type="button"> in a dialog: closes it.
// A page is made again while it is open, and morphed: give repeated elements an id, so they keep their place.
// What a user typed, and <details> and <dialog> that a user opened, stay as they are.
"use strict";
(() => {
  const main = () => document.getElementById("main");
  const byId = (id) => document.getElementById(id);
  const typed = new WeakSet(); // fields that the user changed
  let source = null; // the live connection
  let pending = null; // the request of the filter
  let resume = 0; // the timer that goes live again

  document.documentElement.classList.add("script");

  // show puts a new <main> in the place of the old one.
  function show(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("main");
    const table = main().querySelector(".workloads tbody");
    const rows = fresh.querySelector(".workloads tbody");
    const apart = table && rows && !table.contains(document.activeElement);
    if (apart) exchange(table, rows);
    Idiomorph.morph(main(), fresh, {
      morphStyle: "outerHTML",
      ignoreActiveValue: true,
      callbacks: {
        // A confirmation that is open stays what its reader reads.
        // What is the same isn't compared part by part.
        beforeNodeMorphed: (old, fresh) => !old.isEqualNode(fresh) && !typed.has(old) && !(apart && old === table) && !(old.nodeType === Node.ELEMENT_NODE && old.matches("dialog.confirm[open]")),
        beforeNodeRemoved: (old) => !(old.nodeType === Node.ELEMENT_NODE && old.matches("dialog[open]:modal")),
        beforeAttributeUpdated: (name, node) => !(name === "open" && node.matches("details, dialog")),
      },
    });
    const { gone, title } = main().dataset;
    document.title = title + " · Lockstep";
    say(gone);
  }

  // exchange puts rows in the place of those of the table; equal ones stay. Morphing hundreds of rows
  // takes longer than a user who types waits for.
  function exchange(table, rows) {
    const known = new Map([...table.rows].map((row) => [row.id, row]));
    const next = [...rows.rows].map((row) => {
      const old = known.get(row.id);
      return old?.isEqualNode(row) ? old : row;
    });
    table.replaceChildren(...next);
    rows.replaceChildren();
  }

  // say greys the page out while words are there, and says them.
  function say(words) {
    document.body.classList.toggle("gone", Boolean(words));
    if (byId("gone").textContent !== words) byId("gone").textContent = words;
  }

  function stop() {
    clearTimeout(resume);
    if (source) source.close();
    source = null;
  }

  // live follows the page of this address.
  function live() {
    stop();
    if (document.hidden) return; // A browser has few connections for all its tabs.
    const at = location.pathname + location.search;
    const own = new EventSource("/live?" + new URLSearchParams({ at, has: main().dataset.version }));
    source = own;
    own.addEventListener("page", (e) => source === own && show(e.data));
    own.addEventListener("gone", (e) => source === own && say(e.data));
    own.addEventListener("error", () => {
      if (source !== own) return;
      const isOver = own.readyState === EventSource.CLOSED;
      say(isOver
        ? "lockstep ui doesn't send changes to this page any more. If it was started again, open the address that it printed."
        : "lockstep ui doesn't run any more, or can't be reached. Trying again…");
      if (isOver) resume = setTimeout(live, 5000);
    });
    own.addEventListener("open", () => source === own && say(main().dataset.gone));
  }

  // filter shows the workloads that match what is in the form.
  async function filter(form) {
    stop();
    if (pending) pending.abort();
    const own = new AbortController();
    pending = own;
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) query.set(name, value);
    const address = "/" + (query.size ? "?" + query : "");
    query.set("part", "main");
    try {
      const answer = await fetch("/?" + query, { signal: own.signal });
      const html = await answer.text();
      if (pending !== own) return;
      if (answer.headers.get("Content-Type")?.startsWith("text/html") && html.startsWith("<main")) {
        history.replaceState(null, "", address);
        show(html);
      }
    } catch (err) {
      if (err.name === "AbortError") return;
      say("lockstep ui doesn't run any more, or can't be reached. Trying again…");
    }
    clearTimeout(resume);
    resume = setTimeout(live, 300);
  }

  document.addEventListener("input", (e) => {
    if (e.target.matches("input, textarea")) typed.add(e.target);
    const form = e.target.closest("form#filter");
    if (form) filter(form);
  });

  document.addEventListener("submit", (e) => {
    if (e.target.id !== "filter") return;
    e.preventDefault();
    filter(e.target);
  });

  document.addEventListener("click", async (e) => {
    const hit = e.target.closest("[data-copy], [data-dialog], [data-close]");
    if (!hit) return;
    if (hit.dataset.dialog !== undefined) {
      const dialog = byId(hit.dataset.dialog);
      if (!dialog) return;
      e.preventDefault();
      dialog.showModal();
    } else if (hit.dataset.close !== undefined) {
      hit.closest("dialog")?.close();
    } else {
      await navigator.clipboard.writeText(hit.dataset.copy);
      const words = hit.textContent;
      hit.textContent = "Copied";
      setTimeout(() => { hit.textContent = words; }, 1500);
    }
  });

  // "/" goes to the filter, as on many sites, and Escape clears a field of it.
  document.addEventListener("keydown", (e) => {
    const field = byId("q");
    if (e.key === "Escape" && e.target.matches("form#filter input") && e.target.value) {
      e.preventDefault();
      e.target.value = "";
      e.target.dispatchEvent(new Event("input", { bubbles: true }));
      return;
    }
    if (e.key !== "/" || !field || e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog")) return;
    e.preventDefault();
    field.focus();
    field.select();
  });

  // Without a script the confirmation is a part of the page.
  for (const dialog of document.querySelectorAll("dialog.confirm[open]")) {
    dialog.close();
    dialog.showModal();
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : live()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (e) => { if (e.persisted) live(); });
  live();
})();
