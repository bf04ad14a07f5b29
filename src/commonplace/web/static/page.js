// All that a browser adds to the page: hits as one types, keys, copying. Everything works without it.
"use strict";
{
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const say = (text) => { const place = one("#say"); if (place) place.textContent = text; };
  for (const element of all(".js")) element.hidden = false;

  // Hits as one types: after a pause, the last request alone, and never markup that a string became.
  const ask = one("#ask");
  if (ask) {
    const box = document.createElement("div");
    let waiting = 0, request = null, at = -1;
    box.id = "live";
    box.hidden = true;
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-label", "Hits");
    ask.form.append(box);
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", "live"]]) ask.setAttribute(name, value);
    const options = () => all("[role=option]", box);
    const choose = (number) => {
      const list = options();
      at = list.length ? (number + list.length + 1) % (list.length + 1) : -1;
      if (at === list.length) at = -1;
      list.forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
      if (at < 0) ask.removeAttribute("aria-activedescendant");
      else { ask.setAttribute("aria-activedescendant", list[at].id); list[at].scrollIntoView({ block: "nearest" }); }
    };
    const close = () => { box.hidden = true; at = -1; ask.setAttribute("aria-expanded", "false"); ask.removeAttribute("aria-activedescendant"); };
    const show = (fragment) => {
      if (!fragment || !ask.value.trim() || document.activeElement !== ask) return close();
      box.replaceChildren(...[...fragment.childNodes].map((node) => document.importNode(node, true)));
      at = -1;
      box.hidden = false;
      const count = options().length;
      ask.setAttribute("aria-expanded", String(count > 0));
      say(count === 0 ? "No hits yet" : count === 1 ? "1 hit" : `${count} hits`);
    };
    const load = () => {
      if (request) request.abort();
      if (!ask.value.trim()) return close();
      request = new XMLHttpRequest();
      request.open("GET", `/live?q=${encodeURIComponent(ask.value)}`);
      request.responseType = "document";
      request.setRequestHeader("Accept", "text/html");
      request.onload = () => show(request.status === 200 && one("[data-count]", request.response));
      request.send();
    };
    ask.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(load, 150); });
    ask.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !box.hidden) { close(); event.preventDefault(); }
      else if (event.key === "ArrowDown" && !box.hidden) { choose(at + 1); event.preventDefault(); }
      else if (event.key === "ArrowUp" && !box.hidden) { choose(at < 0 ? options().length - 1 : at - 1); event.preventDefault(); }
      else if (event.key === "Enter" && at >= 0) { location.assign(options()[at].dataset.to); event.preventDefault(); }
    });
    box.addEventListener("mousedown", (event) => {
      const option = event.target.closest("[role=option]");
      event.preventDefault();
      if (option) location.assign(option.dataset.to);
    });
    ask.addEventListener("blur", close);
    ask.form.addEventListener("submit", () => { clearTimeout(waiting); if (request) request.abort(); });
  }

  // Copying
  const copy = async (button) => {
    try { await navigator.clipboard.writeText(button.dataset.copy); say("Copied"); button.classList.add("copied"); } catch { say("The browser did not let it be copied"); }
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });

  // Keys
  const dialog = one("#keys"), single = one("#single");
  const wanted = () => { try { return localStorage.getItem("single-keys") !== "off"; } catch { return true; } };
  if (single) {
    single.checked = wanted();
    single.addEventListener("change", () => { try { localStorage.setItem("single-keys", single.checked ? "on" : "off"); } catch { /* it lasts as long as the page */ } });
    one("#help").addEventListener("click", () => dialog.showModal());
  }
  const stops = () => all(".stop");
  let stop = -1, goes = 0;
  const step = (by) => {
    const list = stops();
    if (!list.length) return;
    stop = Math.min(Math.max(stop + by, 0), list.length - 1);
    list.forEach((element, index) => element.classList.toggle("at", index === stop));
    const link = one(".to", list[stop]);
    if (link) link.focus();
    list[stop].scrollIntoView({ block: "nearest" });
  };
  const press = (key) => {
    const here = stops()[stop], element = (here && one(`[data-key="${key}"]`, here)) || one(`main [data-key="${key}"], aside [data-key="${key}"], .done [data-key="${key}"]`);
    if (element) element.click();
    return Boolean(element);
  };
  const places = { s: "/", m: "/memories", f: "/sources", h: "/health", c: "/connect" };
  document.addEventListener("focusin", (event) => {
    const number = stops().findIndex((element) => element.contains(event.target));
    if (number >= 0) stop = number;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && ask) { ask.focus(); ask.select(); event.preventDefault(); return; }
    const typing = event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || (dialog && dialog.open) || !wanted()) return;
    const now = Date.now(), key = event.key;
    if (goes && now - goes < 1500 && places[key]) { goes = 0; location.assign(places[key]); event.preventDefault(); return; }
    goes = key === "g" ? now : 0;
    if (key === "/" && ask) { ask.focus(); ask.select(); event.preventDefault(); }
    else if (key === "?" && dialog) { dialog.showModal(); event.preventDefault(); }
    else if (key === "j") step(1);
    else if (key === "k") step(-1);
    else if ("oye#u".includes(key) && press(key)) event.preventDefault();
  });

  // What changes by itself is asked for again, while somebody looks.
  const seconds = Number(document.body.dataset.refresh || 0);
  if (seconds) setInterval(() => {
    if (document.hidden || document.activeElement !== document.body) return;
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.setRequestHeader("Accept", "text/html");
    request.onload = () => {
      const fresh = request.status === 200 && one("main", request.response);
      if (!fresh || document.activeElement !== document.body) return;
      one("main").replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
      for (const element of all("main .js")) element.hidden = false;
      if (!request.response.body.dataset.refresh) location.reload();
    };
    request.send();
  }, seconds * 1000);

  // Choosing many
  const choice = one("[data-choose]");
  if (choice) {
    const boxes = all("input[name=number]");
    choice.hidden = false;
    choice.addEventListener("change", () => { for (const box of boxes) box.checked = one("input", choice).checked; });
  }
}
