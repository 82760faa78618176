"use strict";
// All text enters the page by textContent: a name is never read as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const ALL = "all tasks";

function make(tag, text, parent, attributes = {}) {
  const node = document.createElement(tag);
  if (text !== null) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (parent) parent.append(node);
  return node;
}

// Plotly reads a little markup in its labels.
const label = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
const percent = (share) => (100 * share).toFixed(1) + " %";
const range = (low, high) => `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}`;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const channels = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
const faded = (colour, alpha) => `rgba(${channels(colour).join(",")},${alpha})`;

// The choices live in the address, so that a reload (or a colleague) sees the same.
const CHOICES = ["experiment", "task", "x", "y", "smoothing", "measure"];
const hash = new URLSearchParams(location.hash.slice(1));
const hidden = new Set((hash.get("hidden") || "").split(",").filter(Boolean));

function remember() {
  for (const id of CHOICES) hash.set(id, $(id).value);
  hash.set("seeds", $("seeds").checked ? "1" : "");
  hash.set("hidden", [...hidden].join(","));
  history.replaceState(null, "", "#" + hash);
}

const current = () => data.experiments[$("experiment").selectedIndex];
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 600px)");

function colour(method) {
  const plain = channels(data.colours[method]);
  const light = dark.matches ? plain.map((c) => Math.round(c + 0.35 * (255 - c))) : plain;
  return "#" + light.map((c) => c.toString(16).padStart(2, "0")).join("");
}

const shown = (experiment) => experiment.methods.filter((method) => !hidden.has(method));

function options(select, values, texts = values) {
  const before = select.value || hash.get(select.id);
  select.replaceChildren(
    ...values.map((value, index) => make("option", texts[index], null, { value })));
  if (values.includes(before)) select.value = before;
}

// A metrics.csv: numbers by column, null where nothing was measured.
function columnsOf(csv) {
  const [head, ...rows] = csv.trim().split(/\r?\n/).map((line) => line.split(","));
  const numbers = rows.map((row) => row.map((value) => (value === "" ? null : Number(value))));
  return Object.fromEntries(head.map((name, index) => [name, numbers.map((row) => row[index])]));
}

for (const experiment of data.experiments)
  for (const run of experiment.runs) {
    run.columns = run.csv ? columnsOf(run.csv) : { epoch: [], success: [] };
    // Counted in the epochs that methods are compared by, of which its own may be parts.
    run.columns.epoch = run.columns.epoch.map((epoch) => epoch / run.stride);
    run.epochs = run.columns.epoch.length / run.stride;
  }
