"use strict";

// Everything that comes from the server or the user is set as text, never as markup.
const $ = (id) => document.getElementById(id);
const K = 24;
let hits = []; // the images on show
let open = 0; // the one in the viewer
let request = null; // the search under way

function show(error) {
  $("error").hidden = !error;
  $("error").textContent = error || "";
}

// Asks the server; a busy one is asked again a few times.
async function ask(url, options, attempt = 0) {
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  if (response.status === 503 && attempt < 3) {
    const wait = Number(response.headers.get("retry-after")) || 1;
    $("status").textContent = "The server is busy; trying again …";
    await new Promise((done) => setTimeout(done, wait * 1000));
    return ask(url, options, attempt + 1);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    const text = body.error || `The server answered with status ${response.status}.`;
    throw new Error(text[0].toUpperCase() + text.slice(1) + ".");
  }
  return body;
}

// Runs a search and shows what it found, or what went wrong.
async function search(what, url, options = {}) {
  if (request) request.abort();
  request = new AbortController();
  const mine = request;
  show(null);
  $("viewer").close();
  $("status").textContent = `Searching for ${what} …`;
  $("results").classList.add("busy");
  try {
    const found = await ask(url, { ...options, signal: mine.signal });
    hits = found.hits;
    fill();
    const ms = found.ms.wait + found.ms.embed + found.ms.search;
    $("status").textContent = hits.length
      ? `${hits.length} images for ${what}, best first (${ms.toFixed(0)} ms)`
      : "No image was found.";
  } catch (error) {
    if (error.name === "AbortError") return;
    hits = [];
    fill();
    $("status").textContent = "";
    show(error.message);
  } finally {
    if (mine === request) $("results").classList.remove("busy");
  }
}

function fill() {
  $("results").replaceChildren(...hits.map((hit, place) => {
    const button = document.createElement("button");
    const image = document.createElement("img");
    image.src = `/api/thumb/${hit.id}`;
    image.alt = "";
    image.loading = "lazy";
    image.addEventListener("error", () => { image.alt = "This image cannot be shown."; });
    const score = document.createElement("span");
    score.className = "score";
    const rank = document.createElement("span");
    rank.textContent = `#${hit.rank}`;
    score.append(hit.score.toFixed(3), rank);
    const path = document.createElement("span");
    path.className = "path";
    path.textContent = hit.path;
    button.append(image, score, path);
    button.setAttribute("aria-label", `Rank ${hit.rank}, score ${hit.score.toFixed(3)}, ${hit.path}`);
    button.addEventListener("click", () => view(place));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }));
}

function view(place) {
  open = place;
  const hit = hits[place];
  $("viewer-title").textContent = `#${hit.rank} · ${hit.score.toFixed(3)} · ${hit.path}`;
  $("full").src = `/api/image/${hit.id}`;
  $("full").alt = hit.path;
  $("previous").disabled = place === 0;
  $("next").disabled = place === hits.length - 1;
  if (!$("viewer").open) $("viewer").showModal();
}

// The address says what is on show, so that back, forward and links work.
function go(fragment) {
  if (location.hash === fragment) follow();
  else location.hash = fragment;
}

function follow() {
  const [kind, value] = [location.hash.slice(1, 3), location.hash.slice(3)];
  if (kind === "q=") {
    let text;
    try {
      text = decodeURIComponent(value);
    } catch {
      return show("This address holds no sentence.");
    }
    $("query").value = text;
    search(`“${text}”`, `/api/search?q=${encodeURIComponent(text)}&k=${K}`);
  } else if (kind === "i=" && /^\d+$/.test(value)) {
    $("query").value = "";
    search(`images like no. ${value}`, `/api/similar/${value}?k=${K}`);
  }
}

function upload(picture) {
  $("query").value = "";
  history.pushState(null, "", location.pathname);
  search(`“${picture.name}”`, `/api/search/image?k=${K}`, { method: "POST", body: picture });
}

// Arrow keys move through the grid as it is laid out.
function move(key) {
  const buttons = [...document.querySelectorAll("#results button")];
  const at = buttons.indexOf(document.activeElement);
  if (at < 0) return false;
  const top = buttons[0].offsetTop;
  const columns = Math.max(1, buttons.filter((button) => button.offsetTop === top).length);
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
  const next = buttons[at + step];
  if (next) next.focus();
  return true;
}

function moreLikeThis() {
  const focused = [...document.querySelectorAll("#results button")].indexOf(document.activeElement);
  const place = $("viewer").open ? open : focused;
  if (place >= 0 && hits[place]) go(`#i=${hits[place].id}`);
}

$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("query").value.trim();
  if (text) go(`#q=${encodeURIComponent(text)}`);
  else show("Describe a person first.");
});
$("picture").addEventListener("change", () => {
  if ($("picture").files[0]) upload($("picture").files[0]);
  $("picture").value = "";
});
$("upload").addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") $("picture").click();
});
$("close").addEventListener("click", () => $("viewer").close());
$("previous").addEventListener("click", () => view(open - 1));
$("next").addEventListener("click", () => view(open + 1));
$("similar").addEventListener("click", moreLikeThis);
window.addEventListener("hashchange", follow);
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "ArrowDown" && hits.length) document.querySelector("#results button").focus();
    return;
  }
  if (event.key === "/") {
    event.preventDefault();
    $("viewer").close();
    $("query").focus();
    $("query").select();
  } else if (event.key === "m") {
    moreLikeThis();
  } else if ($("viewer").open) {
    if (event.key === "ArrowLeft" && open > 0) view(open - 1);
    if (event.key === "ArrowRight" && open < hits.length - 1) view(open + 1);
  } else if (event.key.startsWith("Arrow") && move(event.key)) {
    event.preventDefault();
  }
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    document.body.classList.toggle("dropping", name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
  });
}

ask("/api/info").then((info) => {
  $("about").textContent = `${info.images} images of ${info.gallery}`;
  for (const example of info.examples) {
    const button = document.createElement("button");
    button.textContent = example;
    button.addEventListener("click", () => go(`#q=${encodeURIComponent(example)}`));
    $("examples").append(button);
  }
  follow();
}).catch((error) => show(error.message));
