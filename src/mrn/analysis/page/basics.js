"use strict";
// Text is set by textContent only, so that a name is never parsed as HTML.
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

// Plotly parses some markup in labels.
const label = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
const percent = (share) => (100 * share).toFixed(1) + "%";
const range = (low, high) => `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}`;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const channels = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
const faded = (color, alpha) => `rgba(${channels(color).join(",")},${alpha})`;

// Selections are kept in the URL, so that they survive a reload and can be shared.
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

function color(method) {
  const plain = channels(data.colors[method]);
  const light = dark.matches ? plain.map((c) => Math.round(c + 0.35 * (255 - c))) : plain;
  return "#" + light.map((c) => c.toString(16).padStart(2, "0")).join("");
}

const shown = (experiment) => experiment.methods.filter((method) => !hidden.has(method));

function options(select, values, texts = values) {
  const previous = select.value || hash.get(select.id);
  select.replaceChildren(
    ...values.map((value, index) => make("option", texts[index], null, { value })));
  if (values.includes(previous)) select.value = previous;
}

// Parse a metrics.csv into columns of numbers; null where nothing was measured.
// Only the last lines have numbers; a name in the header may contain commas or line breaks.
function parseColumns(header, csv, epochs) {
  const rows = csv.trim().split(/\r?\n/).slice(-epochs).map((line) => line.split(","));
  const numbers = rows.map((row) => row.map((value) => (value === "" ? null : Number(value))));
  return Object.fromEntries(header.map((name, index) => [name, numbers.map((row) => row[index])]));
}

for (const experiment of data.experiments)
  for (const run of experiment.runs) {
    run.columns = run.csv ? parseColumns(run.header, run.csv, run.seconds.length) : { epoch: [], success: [] };
    // In common epochs, of which an epoch of this run may be a fraction.
    run.columns.epoch = run.columns.epoch.map((epoch) => epoch / run.stride);
    run.epochs = run.columns.epoch.length / run.stride;
  }
