// Follows a run, the list of runs or a log by server-sent events. All text is set as text, never as markup.
"use strict";

(function () {
  const MOST_LINES = 5000;
  const WHOLE = ["header", "main"];
  const LEAST = 900; // milliseconds between two pages

  function write(node, text) {
    if (node && node.textContent !== String(text)) node.textContent = text;
  }

  function cell(row, at, text) {
    if (row.cells[at]) write(row.cells[at], text);
  }

  // Of the page of a run: its head, and the rows of steps by their numbers.
  let latest = null;
  const rows = new Map();

  function take(data) {
    if (latest && latest.shape !== data.shape) rows.clear();
    latest = data;
    for (const row of data.rows) rows.set(row[0], row);
    show(data.rows);
  }

  function show(changed) {
    const data = latest;
    if (!data) return;
    if (data.shape !== document.body.dataset.shape) return load(WHOLE);
    document.title = data.icon + " " + data.title + ": " + data.status;
    const head = document.querySelector("header");
    head.className = data.status;
    const mark = head.querySelector(".mark");
    mark.className = "mark " + data.status;
    write(mark, data.icon + " " + data.outcome);
    write(mark.nextElementSibling, "in " + data.duration + (data.ending ? ", " + data.ending : ""));
    const counts = head.querySelector(".counts");
    counts.replaceChildren(...data.counts.map(function (pair) {
      const item = document.createElement("li"), number = document.createElement("b");
      number.textContent = pair[1];
      item.append(number, " " + pair[0].toLowerCase());
      return item;
    }));
    for (const [n, icon, status, why, ran, tries] of changed) {
      const row = document.querySelector("tr[data-n='" + n + "']");
      if (!row) continue;
      const name = row.cells[0].firstChild;
      if (name && name.nodeType === Node.TEXT_NODE) name.nodeValue = name.nodeValue.replace(/^\S+/, icon);
      const kept = ["path", "again"].filter((word) => row.classList.contains(word));
      row.className = [...(status === "completed" ? [] : ["rest", status]), ...kept].join(" ");
      const small = document.createElement("small");
      small.textContent = why;
      row.cells[1].replaceChildren(status, ...(why ? [" ", small] : []));
      cell(row, 5, ran);
      cell(row, 6, tries || "");
    }
  }

  // Loads the page again and puts it in the place of this one: nobody loses what is open, chosen or typed.
  let loading = false, next = 0;
  async function load(names, query) {
    const typing = document.activeElement && document.activeElement.closest("form");
    if (loading || typing || Date.now() < next) return;
    loading = true;
    try {
      const answer = await fetch(location.pathname + (query || ""), { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const open = [...document.querySelectorAll("details")].map((each) => [each.id, each.open]);
      const chosen = [...document.querySelectorAll("input:checked[id]")].map((each) => each.id);
      const focused = document.activeElement && document.activeElement.id;
      for (const name of names) {
        const there = document.querySelector(name), here = page.querySelector(name);
        if (there && here) there.replaceWith(document.adoptNode(here));
      }
      document.body.dataset.shape = page.body.dataset.shape || "";
      document.title = page.title;
      for (const [id, is] of open) if (document.getElementById(id)) document.getElementById(id).open = is;
      for (const id of chosen) if (document.getElementById(id)) document.getElementById(id).checked = true;
      if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
      next = Date.now() + LEAST;
      if (latest && latest.shape === document.body.dataset.shape) show(rows.values()); // the page may be older
    } catch {
      document.body.classList.add("lost");
    } finally {
      loading = false;
    }
  }

  function listen(path, names) {
    // A stream that begins before `load` would keep that event from coming.
    if (document.readyState !== "complete") {
      addEventListener("load", () => setTimeout(listen, 0, path, names));
      return;
    }
    const source = new EventSource(path);
    source.onopen = () => document.body.classList.remove("lost");
    source.onerror = () => document.body.classList.add("lost");
    for (const name of Object.keys(names)) {
      source.addEventListener(name, (event) => names[name](JSON.parse(event.data), source));
    }
    addEventListener("pagehide", () => source.close());
  }

  const log = document.querySelector("pre[data-log]");
  if (log) {
    listen(log.dataset.log, {
      begin: () => log.replaceChildren(),
      lines: function (lines) {
        const end = document.documentElement;
        const follows = end.scrollHeight - end.scrollTop - end.clientHeight < 40;
        for (const text of lines) log.append(text + "\n");
        while (log.childNodes.length > MOST_LINES) log.firstChild.remove();
        if (follows) end.scrollTop = end.scrollHeight;
      },
      end: (_, source) => { source.close(); load(["header"], location.search); },
    });
  } else if (document.body.dataset.live) {
    listen(document.body.dataset.live, { now: take, page: () => load(WHOLE), end: (_, source) => { source.close(); load(WHOLE); } });
  }
})();
